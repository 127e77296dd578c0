/** Who does the background work? */
import type { Overview } from 'latchkey/admin'
import { usePoll } from '../api/poll.ts'
import { loopStates } from '../api/worker-health.ts'
import { Silent } from '../parts/life.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { Age } from '../parts/time.tsx'

export function Workers() {
  const workers = usePoll<Overview['workers']>('workers', { everyMs: 5_000 })
  const found = workers.value
  const silent = found === undefined ? [] : loopStates(found).filter(({ isSilent }) => isSilent)
  return (
    <>
      <h1 tabIndex={-1}>Workers</h1>
      <ProblemNote problem={workers.problem} />
      {silent.length > 0 && (
        <p>
          <Silent states={silent} />
        </p>
      )}
      {found !== undefined && found.length > 0 && (
        <div class="scroll" role="region" aria-label="Workers" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {['loop', 'process', 'last turn', 'last seen', 'turns', 'failures', 'last error'].map(head => (
                  <th scope="col" key={head}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {found.map(worker => (
                <tr key={`${worker.process} ${worker.loop}`}>
                  <th scope="row">{worker.loop}</th>
                  <td>{worker.process}</td>
                  <td>
                    {worker.lastTurnAgoMs === undefined ? (
                      'never'
                    ) : (
                      <Age ageMs={worker.lastTurnAgoMs + worker.seenAgoMs} readAtMs={workers.readAtMs} after=" ago" />
                    )}
                  </td>
                  <td>
                    <Age ageMs={worker.seenAgoMs} readAtMs={workers.readAtMs} after=" ago" />
                  </td>
                  <td>{worker.turns}</td>
                  <td>{worker.failures}</td>
                  <td class="long">{worker.lastError ?? '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
