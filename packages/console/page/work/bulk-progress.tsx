/** A plan, its start, how far it is, and what became of each row. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { BulkOutcome, BulkPlan, BulkRow } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { usePoll } from '../api/poll.ts'
import { pathWith, read } from '../api/request.ts'
import { announce } from '../parts/announce.tsx'
import { durationText } from '../parts/duration.ts'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { actNames } from './act-names.ts'

export function BulkProgress({ plan, onClose }: { plan: BulkPlan; onClose: () => void }) {
  const [isStarted, setIsStarted] = useState(plan.state !== 'planned')
  const path = `bulk/${plan.bulkId}`
  const current = usePoll<BulkPlan>(isStarted ? path : undefined, { everyMs: 500, isOfDialog: true })
  const act = useAct<BulkOutcome>()
  const { state, finished } = current.value ?? plan
  const start = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    start.current?.focus()
    announce(`The plan has ${plan.matched} rows`)
  }, [])
  useEffect(() => {
    if (state === 'done') announce(`Done: ${finished} rows`)
  }, [state])
  async function send(verb: 'start' | 'cancel'): Promise<void> {
    if (verb === 'start') setIsStarted(true)
    const answer = await act.send({ path: `${path}/${verb}`, body: {} })
    // Without an answer it may have started: the plan itself says so.
    const isRefused = answer.kind === 'problem' && answer.problem.status >= 400
    if (verb === 'start' && isRefused) setIsStarted(false)
    else current.refresh()
  }
  return (
    <>
      <PlanFacts plan={plan} />
      {isStarted && (
        <p>
          <progress max={Math.max(1, plan.matched)} value={finished} aria-label="Rows that are finished" /> {finished}{' '}
          of {plan.matched}, {state}
        </p>
      )}
      <ProblemNote problem={act.problem} />
      {(state === 'done' || state === 'cancelled') && <Results bulkId={plan.bulkId} />}
      <div class="bar">
        {!isStarted && (
          <button type="button" ref={start} disabled={plan.matched === 0} onClick={() => void send('start')}>
            {actNames[plan.act] ?? plan.act}: {plan.matched} rows
          </button>
        )}
        {isStarted && state === 'running' && (
          <button type="button" onClick={() => void send('cancel')}>
            Stop after this row
          </button>
        )}
        <button type="button" class="quiet" onClick={onClose}>
          {isStarted ? 'Close' : 'Do nothing'}
        </button>
      </div>
    </>
  )
}

function PlanFacts({ plan }: { plan: BulkPlan }) {
  const excluded = Object.entries(plan.excluded)
  return (
    <>
      <p>
        <strong>{plan.matched} rows</strong> are fixed in this plan; rows that arrive later are not part of it. It is
        valid for {durationText(plan.validInMs)}.
      </p>
      {excluded.length > 0 && (
        <ul>
          {excluded.map(([why, count]) => (
            <li key={why}>
              {count} left out: {why}
            </li>
          ))}
        </ul>
      )}
      {plan.sample.length > 0 && (
        <p>
          Among them{' '}
          {plan.sample.map((id, at) => (
            <span key={id}>
              {at > 0 && ', '}
              <code>{id.slice(0, 8)}</code>
            </span>
          ))}
          .
        </p>
      )}
    </>
  )
}

/** The API gives 100 rows at once, and a plan has at most 1,000. */
const pagesMax = 10

function Results({ bulkId }: { bulkId: string }) {
  const [rows, setRows] = useState<readonly BulkRow[]>([])
  useEffect(() => {
    const ended = new AbortController()
    void readResults(bulkId, ended.signal).then(found => ended.signal.aborted || setRows(found))
    return () => ended.abort()
  }, [bulkId])
  const results = [...new Set(rows.map(resultOf))]
  return (
    <ul class="results">
      {results.map(result => {
        const same = rows.filter(row => resultOf(row) === result)
        return (
          <li key={result}>
            <details>
              <summary>
                {result}: {same.length}
              </summary>
              {same.slice(0, 20).map(({ id }) => (
                <a key={id} href={hrefOf('key', id)}>
                  <code>{id.slice(0, 8)}</code>{' '}
                </a>
              ))}
            </details>
          </li>
        )
      })}
    </ul>
  )
}

function resultOf({ result = 'not done' }: BulkRow): string {
  return result
}

async function readResults(bulkId: string, signal: AbortSignal): Promise<readonly BulkRow[]> {
  const rows: BulkRow[] = []
  for (let page = 0; page < pagesMax; page += 1) {
    const path = pathWith(`bulk/${bulkId}/rows`, { limit: 100, cursor: rows.at(-1)?.at })
    const answer = await read<readonly BulkRow[]>(path, { signal })
    if (answer.kind !== 'ok' || answer.value.length === 0) break
    rows.push(...answer.value)
  }
  return rows
}
