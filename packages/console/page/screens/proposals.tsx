/** What waits for a second person? */
import { useState } from 'preact/hooks'
import type { Proposal } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { ProblemNote } from '../parts/problem.tsx'
import { ReasonDialog, type ReasonedAct } from '../parts/reason-dialog.tsx'
import { hrefOf } from '../parts/route.ts'
import { useSession } from '../parts/session.ts'
import { Due, Moment } from '../parts/time.tsx'

const heads = ['row', 'act', 'proposed', 'reason', 'evidence', 'state', '']

export function Proposals() {
  const proposals = usePoll<readonly Proposal[]>('proposals', { everyMs: 5_000 })
  const [act, setAct] = useState<ReasonedAct>()
  function close(isDone: boolean): void {
    setAct(undefined)
    if (isDone) proposals.refresh()
  }
  const found = proposals.value
  return (
    <>
      <h1 tabIndex={-1}>Proposals</h1>
      <ProblemNote problem={proposals.problem} />
      {found?.length === 0 && (
        <div class="empty">
          <p>
            <strong>Nothing waits for a second person.</strong> A "no", and forgetting a row, are proposed here by one
            person and decided by another.
          </p>
        </div>
      )}
      {found !== undefined && found.length > 0 && (
        <div class="scroll" role="region" aria-label="Proposals" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {heads.map(head => (
                  <th scope="col" key={head}>
                    {head === '' ? <span class="hidden">decide</span> : head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {found.map(each => (
                <Row key={each.proposalId} proposal={each} readAtMs={proposals.readAtMs} onAct={setAct} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {act !== undefined && <ReasonDialog act={act} onClose={close} />}
    </>
  )
}

interface RowProps {
  readonly proposal: Proposal
  readonly readAtMs: number
  onAct(act: ReasonedAct): void
}

function Row({ proposal, readAtMs, onAct }: RowProps) {
  const { name, may } = useSession()
  const decide = (verb: 'approve' | 'reject') => () => onAct(decision(proposal, verb))
  const isOwn = proposal.by === name
  return (
    <tr>
      <td>
        <a data-row href={hrefOf('key', proposal.id)}>
          {proposal.id.slice(0, 8)}
        </a>{' '}
        {proposal.operation} · {proposal.scope}
      </td>
      <td>{proposal.act}</td>
      <td>
        {proposal.by}, <Moment atMs={proposal.atMs} />
      </td>
      <td class="long">{proposal.reason}</td>
      <td class="long">{proposal.evidence ?? '–'}</td>
      <td>
        {proposal.state}
        {proposal.state === 'open' && (
          <>
            , expires <Due inMs={proposal.expiresInMs} readAtMs={readAtMs} />
          </>
        )}
        {proposal.decidedBy !== undefined && ` by ${proposal.decidedBy}`}
      </td>
      <td>
        {proposal.state === 'open' && isOwn && 'yours: another person decides'}
        {proposal.state === 'open' && !isOwn && may('approve') && (
          <span class="acts">
            <button type="button" data-key="a" onClick={decide('approve')}>
              Approve…
            </button>
            <button type="button" onClick={decide('reject')}>
              Reject…
            </button>
          </span>
        )}
      </td>
    </tr>
  )
}

function decision({ proposalId, act, id, by }: Proposal, verb: 'approve' | 'reject'): ReasonedAct {
  const what = `${act} of ${id.slice(0, 8)}, proposed by ${by}`
  return {
    title: verb === 'approve' ? 'Approve this proposal' : 'Reject this proposal',
    does:
      verb === 'approve'
        ? `${what}, is done now. If the row has moved since, nothing is done.`
        : `${what}, is not done.`,
    path: `proposals/${encodeURIComponent(proposalId)}/${verb}`,
  }
}
