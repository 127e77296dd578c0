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

interface BulkProgressProps {
  readonly plan: BulkPlan
  onStart(): void
  onClose(): void
}

export function BulkProgress({ plan, onStart, onClose }: BulkProgressProps) {
  const [isStarted, setIsStarted] = useState(plan.state !== 'planned')
  const path = `bulk/${plan.bulkId}`
  const current = usePoll<BulkPlan>(isStarted ? path : undefined, {
    ...{ everyMs: 500, isOfDialog: true, isLast: isOver },
  })
  const act = useAct<BulkOutcome>()
  const { state, finished } = current.value ?? plan
  const start = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    start.current?.focus()
    announce(`The plan has ${countText(plan)}`)
  }, [])
  useEffect(() => {
    if (state === 'done') announce(`Done: ${finished} of ${plan.matched}`)
  }, [state])
  async function send(verb: 'start' | 'cancel'): Promise<void> {
    if (verb === 'start') {
      setIsStarted(true)
      onStart()
    }
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
          <progress max={Math.max(1, plan.matched)} value={finished} aria-label="Finished" /> {finished} of{' '}
          {plan.matched}, {state}
        </p>
      )}
      <ProblemNote problem={act.problem} />
      {isOver({ state }) && <Results plan={plan} />}
      <div class="bar">
        {!isStarted && (
          <button type="button" ref={start} disabled={plan.matched === 0} onClick={() => void send('start')}>
            {actNames[plan.act] ?? plan.act}: {countText(plan)}
          </button>
        )}
        {isStarted && state === 'running' && (
          <button type="button" onClick={() => void send('cancel')}>
            Stop after this one
          </button>
        )}
        <button type="button" class="quiet" onClick={onClose}>
          {isStarted ? 'Close' : 'Do nothing'}
        </button>
      </div>
    </>
  )
}

function isOver({ state }: Pick<BulkPlan, 'state'>): boolean {
  return state === 'done' || state === 'cancelled'
}

function countText({ act, matched }: BulkPlan): string {
  const what = act === 'redrive' ? 'message' : 'row'
  return `${matched} ${what}${matched === 1 ? '' : 's'}`
}

function PlanFacts({ plan }: { plan: BulkPlan }) {
  const excluded = Object.entries(plan.excluded)
  return (
    <>
      <p>
        <strong>{countText(plan)}</strong> {plan.matched === 1 ? 'is' : 'are'} fixed in this plan; what arrives later is
        not part of it. It is valid for {durationText(plan.validInMs)}.
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
              <code>{plan.act === 'redrive' ? id : id.slice(0, 8)}</code>
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
/** Of the rows with one result. */
const shownMax = 20

function Results({ plan: { bulkId, act } }: { plan: BulkPlan }) {
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
              {same.slice(0, shownMax).map(({ id }) => (
                <Result key={id} id={id} isRow={act !== 'redrive'} />
              ))}
              {same.length > shownMax && `and ${same.length - shownMax} more`}
            </details>
          </li>
        )
      })}
    </ul>
  )
}

function Result({ id, isRow }: { id: string; isRow: boolean }) {
  if (!isRow) return <code>{id} </code>
  return (
    <a href={hrefOf('key', id)}>
      <code>{id.slice(0, 8)}</code>{' '}
    </a>
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
