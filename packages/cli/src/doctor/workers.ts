/** Who does the background work, by what the processes themselves write into the store. */
import type { Store } from 'latchkey'
import { durationText } from '../program/duration.ts'
import { type Check, type Finding, ok, skip } from './finding.ts'

/** They write every few seconds: one that has been silent for this long is gone. */
const silentMsMax = 2 * 60_000
/** The longest pause of any loop is a minute, and a turn is given up after another. */
const turnMsMax = 5 * 60_000
/** What waits for longer than this waits for a worker that is not there. */
const waitMsMax = 60_000

const cure = 'run createWorkers(latchkey).start() in your application, or latchkey work'

type Beats = Awaited<ReturnType<NonNullable<Store['admin']>['workers']>>

export function workersCheck(store: () => Store): Check {
  return {
    name: 'workers',
    async look() {
      const { admin } = store()
      if (admin === undefined) return skip('this store has no table of workers')
      const beats = await admin.workers()
      const alive = beats.filter(({ seenAgoMs }) => seenAgoMs <= silentMsMax)
      const missing = (await neededLoops(store())).filter(({ loop }) => alive.every(beat => beat.loop !== loop))
      const found = [...missing.map(({ loop, why }) => dead(loop, why, beats)), ...alive.flatMap(ailing)]
      const names = [...new Set(alive.map(({ loop }) => loop))]
      return found.length > 0
        ? found
        : ok(`${names.join(', ')} in ${new Set(alive.map(beat => beat.process)).size} processes`)
    },
  }
}

interface Needed {
  readonly loop: string
  readonly why: string
}

/** Sweeper and reaper always; the others where something waits for them. */
async function neededLoops(store: Store): Promise<readonly Needed[]> {
  const always = [
    { loop: 'sweeper', why: 'rows of dead processes stay as they are' },
    { loop: 'reaper', why: 'expired rows are never deleted' },
  ]
  const [resumable, lag, unknowns] = await Promise.all([
    store.resumable({ limit: 1 }),
    store.outbox?.lag(),
    store.reconciliation?.unknowns(),
  ])
  const isLate = lag !== undefined && lag.waiting > 0 && lag.oldestMs > waitMsMax
  return [
    ...always,
    ...(resumable.length > 0 ? [{ loop: 'resumer', why: 'work that was interrupted or deferred waits' }] : []),
    ...(isLate ? [{ loop: 'relay', why: `messages wait for ${durationText(lag.oldestMs)}` }] : []),
    ...(unknowns?.some(({ oldestMs }) => oldestMs > waitMsMax)
      ? [{ loop: 'reconciler', why: 'no process asks the provider about unknown outcomes' }]
      : []),
  ]
}

function dead(loop: string, why: string, beats: Beats): Finding {
  const last = Math.min(...beats.filter(beat => beat.loop === loop).map(({ seenAgoMs }) => seenAgoMs))
  const since = Number.isFinite(last) ? `has been silent for ${durationText(last)}` : 'is not running anywhere'
  return { verdict: 'FAIL', text: `the ${loop} ${since}: ${why}`, cure }
}

function ailing({ loop, process, lastTurnAgoMs, lastError }: Beats[number]): readonly Finding[] {
  if (lastTurnAgoMs !== undefined && lastTurnAgoMs > turnMsMax) {
    return [
      {
        verdict: 'warn',
        text: `the ${loop} of ${process} has ended no turn for ${durationText(lastTurnAgoMs)}`,
        cure: 'look at the log of that process',
      },
    ]
  }
  if (lastError === undefined) return []
  return [
    {
      verdict: 'warn',
      text: `the last turn of the ${loop} of ${process} failed: ${lastError}`,
      cure: 'look at the log of that process',
    },
  ]
}
