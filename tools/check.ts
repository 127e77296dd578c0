// npm run check                              every check below
// npm run check -- --only architecture,tidy  some of them
// npm run check -- --update                  rewrites the committed lists (reach.json) instead of comparing
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checkArchitecture } from './check/architecture.ts'
import { checkDependencies } from './check/dependencies.ts'
import { checkDocs } from './check/docs.ts'
import { checkExamples } from './check/examples.ts'
import { checkExports } from './check/exports.ts'
import { describeFinding } from './check/finding.ts'
import type { Check, Finding } from './check/finding.ts'
import { checkDocumentedOptions } from './check/options.ts'
import { checkPackaging } from './check/packaging.ts'
import { checkPage } from './check/page.ts'
import { checkReach } from './check/reach.ts'
import { checkThreats } from './check/threats.ts'
import { checkTidy } from './check/tidy.ts'
import { checkFormat, checkLint, checkTypes } from './check/toolchain.ts'

// The longest first: with two lanes, the short ones run beside it.
const CHECKS: Record<string, Check> = {
  examples: checkExamples,
  packaging: checkPackaging,
  types: checkTypes,
  lint: checkLint,
  docs: checkDocs,
  page: checkPage,
  format: checkFormat,
  architecture: checkArchitecture,
  reach: checkReach,
  exports: checkExports,
  options: checkDocumentedOptions,
  tidy: checkTidy,
  threats: checkThreats,
  dependencies: checkDependencies,
}
const LANES = 2
// A broken setup can cause thousands of findings; the first ones are enough.
const SHOWN_MAX = 50

const { values } = parseArgs({ options: { only: { type: 'string' }, update: { type: 'boolean', default: false } } })
const root = fileURLToPath(new URL('..', import.meta.url))
const names = values.only?.split(',') ?? Object.keys(CHECKS)
const failures: { name: string; findings: Finding[] }[] = []

async function runOne(name: string): Promise<void> {
  const startedMs = performance.now()
  const check = CHECKS[name]
  const findings =
    check === undefined
      ? [
          {
            file: 'tools/check.ts',
            message: `unknown check "${name}": choose from ${Object.keys(CHECKS).join(', ')}`,
          },
        ]
      : await check({ root, update: values.update }).catch((error: unknown) => [
          { file: `tools/check (${name})`, message: String(error) },
        ])
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1).padStart(5)
  const verdict = findings.length === 0 ? 'ok' : `FAILED, ${findings.length} found`
  console.log(`${name.padEnd(13)} ${seconds} s  ${verdict}`)
  if (findings.length > 0) failures.push({ name, findings })
}

const queue = [...names]
async function runLane(): Promise<void> {
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) await runOne(name)
}
await Promise.all(Array.from({ length: LANES }, runLane))

for (const { name, findings } of failures) {
  console.error(`\n${name}`)
  for (const finding of findings.slice(0, SHOWN_MAX)) console.error(`  ${describeFinding(finding)}`)
  if (findings.length > SHOWN_MAX) console.error(`  … and ${findings.length - SHOWN_MAX} more`)
}
process.exitCode = failures.length === 0 ? 0 : 1
