/** The console: whether a long queue can be scrolled without a jerk. */
import { findChromium, startChromium } from '../../../test/servers/browser/chromium.ts'
import type { Task } from '../console/long-tasks.ts'
import { traceScroll } from '../console/scroll.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { figure } from '../statistics.ts'

/** As many as a group shows. */
const rows = 1_000
/** What browsers call a long task: a person notices. */
const longMs = 50

export const consolePage: Section = {
  name: 'console',
  what: 'the longest task of the page while a queue of 1,000 rows is scrolled, in a trace of Chromium',
  async run({ repetitions }) {
    const found = findChromium()
    if (found.kind === 'missing') return resultOf([], [`${found.why}; \`npm test\` installs it where it can`])
    const browser = await startChromium()
    try {
      const traces: (readonly Task[])[] = []
      for (let repetition = 0; repetition < repetitions; repetition++) traces.push(await traceScroll(browser, rows))
      return resultOf(traces, [])
    } finally {
      await browser.stop()
    }
  },
}

function resultOf(traces: readonly (readonly Task[])[], faults: readonly string[]): SectionResult {
  const longest = traces.map(tasks => Math.max(...tasks.map(({ ms }) => ms)))
  const longestCpu = traces.map(tasks => Math.max(...tasks.map(({ cpuMs }) => cpuMs)))
  const long = traces.map(tasks => tasks.filter(({ ms }) => ms > longMs).length)
  const tasks = traces.map(({ length }) => length)
  const table = markdownTable(
    ['rows', 'tasks', 'longest ms', 'longest ms of processor time', `over ${longMs} ms`],
    [[String(rows), withSpread(tasks, 0), withSpread(longest, 1), withSpread(longestCpu, 1), withSpread(long, 0)]],
  )
  return {
    markdown: ['### Console: a long queue, scrolled down and up', table].join('\n\n'),
    figures: {
      'longest task': figure(longest, 'ms', 'longest task of the page while 1,000 rows are scrolled'),
      'longest task, processor': figure(longestCpu, 'ms', 'the same, processor time'),
    },
    faults,
    data: { traces },
  }
}
