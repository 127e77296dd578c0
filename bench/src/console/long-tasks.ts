/** What a browser's own trace says about the main thread of a page. */
import type { CDPSession } from 'playwright-core'

export interface Task {
  /** What a person waits for. */
  readonly ms: number
  /** The processor time in it, which other programs on the machine lengthen less. */
  readonly cpuMs: number
}

/** The few fields that are read here. Times are in microseconds. */
interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly dur?: number
  readonly tdur?: number
  readonly args?: { readonly name?: string }
}

/** What Chromium's performance panel draws as a task. */
const taskName = 'RunTask'
const categories = ['disabled-by-default-devtools.timeline', '__metadata']

/** The tasks of the page's main thread while `act` ran. */
export async function traceTasks(session: CDPSession, act: () => Promise<void>): Promise<readonly Task[]> {
  const events: TraceEvent[] = []
  // Chromium's own format.
  session.on('Tracing.dataCollected', ({ value }) => void events.push(...(value as unknown as TraceEvent[])))
  await session.send('Tracing.start', { traceConfig: { includedCategories: categories } })
  await act()
  const complete = new Promise(resolve => session.once('Tracing.tracingComplete', resolve))
  await session.send('Tracing.end')
  await complete
  return tasksOf(events)
}

export function tasksOf(events: readonly TraceEvent[]): readonly Task[] {
  const main = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  return events
    .filter(({ name, pid, tid }) => name === taskName && main.has(`${pid} ${tid}`))
    .map(({ dur = 0, tdur = 0 }) => ({ ms: dur / 1_000, cpuMs: tdur / 1_000 }))
}
