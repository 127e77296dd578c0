/** What is known about a row, in words that can be read to a customer. */
import type { ComponentChildren } from 'preact'
import type { AdminKey, Overview } from 'latchkey/admin'
import { loopStates } from '../api/worker-health.ts'
import { Copy } from '../parts/copy.tsx'
import { Silent } from '../parts/life.tsx'
import { RowStates } from '../parts/state.tsx'
import { Age, Due, Moment } from '../parts/time.tsx'

interface FactsProps {
  readonly row: AdminKey
  readonly readAtMs: number
  readonly overview: Overview | undefined
}

export function Facts({ row, readAtMs, overview }: FactsProps) {
  return (
    <dl class="facts">
      <Fact name="State">
        <RowStates row={row} />{' '}
        {row.waitsForMs !== undefined && (
          <>
            for <Age ageMs={row.waitsForMs} readAtMs={readAtMs} />
          </>
        )}
      </Fact>
      {row.state === 'in_progress' && (
        <Fact name="Lease">
          <Lease leftMs={row.leaseLeftMs} readAtMs={readAtMs} overview={overview} />
        </Fact>
      )}
      {row.description !== undefined && <Fact name="What">{row.description}</Fact>}
      {row.cause !== undefined && <Fact name="Cause">{row.cause}</Fact>}
      <Fact name="Id">
        <code>{row.id}</code> <Copy text={row.id} what="id" />
      </Fact>
      <Fact name="Fence">{row.fence}</Fact>
      <Fact name="Recovery">{row.recovery}</Fact>
      {row.definitionVersion !== undefined && (
        <Fact name="Needs">version {row.definitionVersion} of its definition</Fact>
      )}
      <Fact name="Attempts">
        {row.attempts}, crashes {row.crashes}
      </Fact>
      {row.openEffect !== undefined && (
        <Fact name="Downstream key">
          <code>{row.openEffect.downstreamKey}</code> <Copy text={row.openEffect.downstreamKey} what="downstream key" />
        </Fact>
      )}
      {row.references.length > 0 && <Fact name="References">{row.references.map(({ text }) => text).join(', ')}</Fact>}
      {row.quarantineLeftMs !== undefined && (
        <Fact name="Quarantine">
          {row.quarantineLeftMs > 0 ? (
            <>
              over <Due inMs={row.quarantineLeftMs} readAtMs={readAtMs} />
            </>
          ) : (
            'over'
          )}
        </Fact>
      )}
      {row.nextLookUpInMs !== undefined && (
        <Fact name="Next look-up">
          <Due inMs={row.nextLookUpInMs} readAtMs={readAtMs} />
        </Fact>
      )}
      {row.owner !== undefined && <Fact name="Owner">{row.owner}</Fact>}
      {row.note !== undefined && <Fact name="Note">{row.note}</Fact>}
      <Fact name="Client key">not stored, only its hash</Fact>
      <Fact name="Created">
        <Moment atMs={row.createdAtMs} />
      </Fact>
      <Fact name="Expires">
        <Moment atMs={row.expiresAtMs} />
      </Fact>
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

interface LeaseProps extends Pick<FactsProps, 'readAtMs' | 'overview'> {
  readonly leftMs: number
}

/** Nobody takes a row from its owner by hand: it is the sweeper's, and where that is silent, the process to look at is named. */
function Lease({ leftMs, readAtMs, overview }: LeaseProps) {
  if (leftMs > 0)
    return (
      <>
        ends <Due inMs={leftMs} readAtMs={readAtMs} />, unless its owner extends it
      </>
    )
  const silent = loopStates(overview?.workers ?? []).filter(({ loop, isSilent }) => loop === 'sweeper' && isSilent)
  if (overview === undefined || silent.length === 0) return <>over: the sweeper takes the row within a minute</>
  return (
    <>
      over, and nobody takes the row. <Silent states={silent} />
    </>
  )
}
