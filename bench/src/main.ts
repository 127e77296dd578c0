/** `npm run bench`: what Latchkey costs on this machine, as ratios to the same server without it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Arguments, readArguments, usage } from './arguments.ts'
import { type Context, openContext } from './context.ts'
import { conditionsOf } from './machine/conditions.ts'
import { agreementTable, type Figures, readFigures } from './report/agreement.ts'
import { barOf, readGoals } from './report/goals.ts'
import { publish, publishInReadme } from './report/publish.ts'
import { jsonOf, markdownOf, type Report, reportOf } from './report/report.ts'
import { summaryTable } from './report/summary.ts'
import type { SectionResult } from './section.ts'
import { sections } from './sections/all.ts'

const goalsFile = fileURLToPath(new URL('../goals.json', import.meta.url))
const results = fileURLToPath(new URL('../results/', import.meta.url))

const given = readArguments(process.argv.slice(2), sections)
if ('wrong' in given) {
  console.error(`${given.wrong}\n\n${usage}`)
  process.exit(2)
}
if (given.readme) {
  publishInReadme()
  process.exit(0)
}
const earlier = given.compare === undefined ? undefined : earlierFigures(given.compare)
const report = await bench(given)
write(report)
if (earlier !== undefined) console.log(`\n${agreementTable(report.verdicts, earlier)}`)
if (given.publish) publish(report)
const missed = report.verdicts.filter(({ met }) => !met)
if (given.check) {
  for (const { name, goal, found } of missed)
    console.error(`missed: ${name} must be ${barOf(goal)} (got ${found?.value.toFixed(3) ?? 'no measurement'})`)
}
process.exitCode = report.faults.length > 0 || (given.check && missed.length > 0) ? 1 : 0

function earlierFigures(file: string): Figures {
  try {
    return readFigures(file)
  } catch (error) {
    console.error(`cannot compare with ${file}: ${error instanceof Error ? error.message : String(error)}`)
    return process.exit(2)
  }
}

async function bench(options: Arguments): Promise<Report> {
  const startedAt = performance.now()
  const elapsed: string[] = []
  const context = await openContext(options)
  try {
    const measured = await runSections(options, context, elapsed)
    const conditions = conditionsOf({ ...options, redis: context.started().redis })
    return reportOf(measured, conditions, readGoals(goalsFile))
  } finally {
    await context.close()
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
    console.log(`the whole run took ${minutes} minutes: ${elapsed.join(', ')}\n`)
  }
}

async function runSections(
  { only }: Arguments,
  context: Context,
  elapsed: string[],
): Promise<Map<string, SectionResult>> {
  const measured = new Map<string, SectionResult>()
  for (const section of sections.filter(({ name, partOf = name }) => only.includes(name) || only.includes(partOf))) {
    const startedAt = performance.now()
    const result = await section.run(context)
    measured.set(section.name, result)
    elapsed.push(`${section.name} ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
    console.log(`${result.markdown}\n\n(${elapsed.at(-1)})\n`)
  }
  return measured
}

function write(report: Report): void {
  mkdirSync(results, { recursive: true })
  writeFileSync(`${results}latest.json`, jsonOf(report))
  writeFileSync(`${results}latest.md`, markdownOf(report))
  const settings = new Set([...report.sections.values()].flatMap(({ settings = [] }) => settings))
  console.log(`${summaryTable(report.verdicts)}\n\n${report.sentence}\n${[...settings].join('\n')}`)
  for (const fault of report.faults) console.error(`inconsistent: ${fault}`)
  console.log(`written to ${results}latest.json and latest.md`)
}
