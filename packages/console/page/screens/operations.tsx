/** How is each operation set up, and how does it behave? */
import type { OperationView } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { percentText } from '../api/rate-sums.ts'
import { atMostText, durationText } from '../parts/duration.ts'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'

const setUp = ['operation', 'kind', 'on failure', 'retention', 'quarantine']
const behaviour = ['p50', 'p99', 'lease used', 'reserved / h', 'replayed', 'mismatch', 'unknown']

export function Operations() {
  const operations = usePoll<readonly OperationView[]>('operations', { everyMs: 5_000 })
  return (
    <>
      <h1 tabIndex={-1}>Operations</h1>
      <ProblemNote problem={operations.problem} />
      {operations.value?.length === 0 && (
        <div class="empty">
          <p>
            <strong>This process has declared no operation.</strong> Declare them before the routes of the console are
            mounted, or serve the console from the process that has them.
          </p>
        </div>
      )}
      {operations.value !== undefined && operations.value.length > 0 && (
        <>
          <div class="scroll" role="region" aria-label="Operations" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  {[...setUp, ...behaviour].map(head => (
                    <th scope="col" key={head}>
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {operations.value.map(operation => (
                  <OperationRow key={operation.name} {...operation} />
                ))}
              </tbody>
            </table>
          </div>
          <p>
            Times are of the whole fleet in the last hour, and counted in steps of 1, 2, 5, 10 ms and so on: ≤ 50 ms is
            the upper edge of a step. Lease used is p99 as a share of the lease, of guarded work. Above 50 %, a longer
            lease or a shorter handler is safer.
          </p>
        </>
      )}
    </>
  )
}

function OperationRow({ name, kind, onFailure, retentionMs, quarantineMs, unknown, lastHour }: OperationView) {
  const { reserved = 0, replayed = 0, mismatched = 0 } = lastHour ?? {}
  const seen = reserved + replayed
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{kind}</td>
      <td>{onFailure ?? '–'}</td>
      <td>{durationText(retentionMs)}</td>
      <td>{durationText(quarantineMs)}</td>
      <Times took={lastHour?.took} />
      <td>{reserved}</td>
      <td>{percentText(replayed, seen)}</td>
      <td>{percentText(mismatched, seen)}</td>
      <td>
        <a href={hrefOf('unknown', '', { operation: name })}>{unknown ?? 'show'}</a>
      </td>
    </tr>
  )
}

type TookGiven = NonNullable<OperationView['lastHour']>['took']

function Times({ took }: { took: TookGiven }) {
  if (took === undefined) return <td colSpan={3}>no executions in the last hour</td>
  const { p50Ms, p99Ms, leaseUsed } = took
  return (
    <>
      <td>{atMostText(p50Ms)}</td>
      <td>{atMostText(p99Ms)}</td>
      <td>{leaseUsed === undefined ? '–' : `≤ ${Math.ceil(leaseUsed * 100)} %`}</td>
    </>
  )
}
