/** The lanes of the outbox that have anything: where is it stuck, and who works on it? */
import type { Counted, Lanes, LaneState } from 'latchkey/admin'
import { Age, Due } from '../parts/time.tsx'

interface LaneTableProps {
  readonly lanes: Lanes
  readonly readAtMs: number
}

export function LaneTable({ lanes: { lanes, partial }, readAtMs }: LaneTableProps) {
  if (partial) return <p>The lanes took too long to read: they are not shown.</p>
  if (lanes.length === 0) return null
  return (
    <>
      <h2 id="outbox-lanes">Lanes</h2>
      <div class="scroll" role="region" aria-labelledby="outbox-lanes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {['lane', 'waiting', 'parked', 'waiting behind a parked one', 'oldest', 'held by', 'until'].map(head => (
                <th scope="col" key={head}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {lanes.map(lane => (
              <LaneRow key={lane.lane} lane={lane} readAtMs={readAtMs} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function LaneRow({ lane: { lane, waiting, parked, behind, oldestMs, lease }, readAtMs }: LaneRowProps) {
  return (
    <tr>
      <th scope="row">{lane}</th>
      <td>{countText(waiting)}</td>
      <td>{countText(parked)}</td>
      <td>{countText(behind)}</td>
      <td>{oldestMs === 0 ? '–' : <Age ageMs={oldestMs} readAtMs={readAtMs} />}</td>
      <td>{lease?.by ?? 'no relay'}</td>
      <td>{leftOf(lease, readAtMs)}</td>
    </tr>
  )
}

interface LaneRowProps {
  readonly lane: LaneState
  readonly readAtMs: number
}

function leftOf(lease: LaneState['lease'], readAtMs: number) {
  if (lease === undefined) return '–'
  return lease.leftMs > 0 ? <Due inMs={lease.leftMs} readAtMs={readAtMs} /> : 'over: its relay died'
}

function countText({ count, more }: Counted): string {
  return more ? `${count}+` : String(count)
}
