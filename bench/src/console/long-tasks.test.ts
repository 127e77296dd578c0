import { expect, it } from 'vitest'
import { tasksOf } from './long-tasks.ts'

it('counts the tasks of the main thread of the page, in milliseconds', () => {
  const page = { pid: 7, tid: 1 }
  const events = [
    { name: 'RunTask', ...page, dur: 61_000, tdur: 12_500 },
    { name: 'Layout', ...page, dur: 50_000, tdur: 10_000 },
    { name: 'RunTask', pid: 7, tid: 2, dur: 900_000, tdur: 900_000 },
    { name: 'thread_name', ...page, args: { name: 'CrRendererMain' } },
    { name: 'thread_name', pid: 7, tid: 2, args: { name: 'Compositor' } },
  ]
  expect(tasksOf(events)).toEqual([{ ms: 61, cpuMs: 12.5 }])
})
