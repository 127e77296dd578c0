/** How is each operation set up, and how does it behave? */
import type { OperationView, Overview, WorkGroups } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { percentText, sumOf } from '../api/rate-sums.ts'
import { durationText } from '../parts/duration.ts'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'

const heads = ['operation', 'kind', 'retention', 'quarantine', 'reserved / h', 'replayed', 'mismatch', 'unknown']

export function Operations({ overview }: { overview: Overview | undefined }) {
  const operations = usePoll<readonly OperationView[]>('operations', { everyMs: 60_000 })
  const groups = usePoll<WorkGroups>('work/groups?kind=unknown', { everyMs: 5_000 })
  const rates = overview?.rates ?? []
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
        <div class="scroll" role="region" aria-label="Operations" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {heads.map(head => (
                  <th scope="col" key={head}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {operations.value.map(({ name, kind, retentionMs, quarantineMs }) => {
                const reserved = sumOf(rates, 'reserve.created', name)
                const replayed = sumOf(rates, 'reserve.replay', name)
                const seen = reserved + replayed
                const unknown = groups.value?.groups.filter(group => group.operation === name) ?? []
                return (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    <td>{kind}</td>
                    <td>{durationText(retentionMs)}</td>
                    <td>{durationText(quarantineMs)}</td>
                    <td>{reserved}</td>
                    <td>{percentText(replayed, seen)}</td>
                    <td>{percentText(sumOf(rates, 'reserve.key_misuse', name), seen)}</td>
                    <td>
                      <a href={hrefOf('unknown', '', { operation: name })}>
                        {unknown.reduce((sum, { count }) => sum + count, 0)}
                      </a>
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
