// npm run proof                          everything that takes too long for npm test, one part after the other, within an hour
// npm run proof -- --only story,torture  the parts whose names contain one of these
// The last line is `N passed, M failed`, and the exit code is 0 only if something passed and nothing failed.
import { parseArgs } from 'node:util'
import { type Part, runParts } from './proof/run-parts.ts'
import { whyNoRuntimes } from './runtimes/platform.ts'

const npm = (script: string, ...args: readonly string[]): readonly [string, ...string[]] => [
  'npm',
  'run',
  '--silent',
  script,
  '--',
  ...args,
]

const whyNot = whyNoRuntimes()
const RUNTIMES: readonly Part[] =
  whyNot === undefined ? [{ name: 'Node 22, 24 and 26', command: npm('runtimes'), minutesMax: 30 }] : []

// The quick parts first, so that a failure shows early.
const PARTS: readonly Part[] = [
  { name: 'story', command: ['tsx', 'tools/proof/story.ts'], minutesMax: 5 },
  { name: 'long suites', command: npm('test', '--proof'), minutesMax: 20 },
  { name: 'clients', command: npm('test', 'test/clients'), minutesMax: 5 },
  // Thirty lost requests and confirms on each broker.
  {
    name: 'publishers',
    command: ['env', 'LATCHKEY_CUTS=30', ...npm('test', 'packages/latchkey/src/outbox')],
    minutesMax: 10,
  },
  { name: 'simulation', command: npm('simulate', '--seeds', '20000'), minutesMax: 15 },
  ...RUNTIMES,
  { name: 'siege', command: npm('siege', '--seconds', '60', '--seed', '1'), minutesMax: 5 },
  {
    name: 'siege on redis',
    command: npm('siege', '--store', 'redis', '--seconds', '60', '--seed', '1'),
    minutesMax: 5,
  },
  {
    name: 'siege with a cache',
    command: npm('siege', '--store', 'tiered', '--seconds', '45', '--seed', '1'),
    minutesMax: 5,
  },
  { name: 'torture, seed 1', command: npm('torture', '--seconds', '240', '--seed', '1'), minutesMax: 12 },
  { name: 'torture, seed 770011', command: npm('torture', '--seconds', '240', '--seed', '770011'), minutesMax: 12 },
  {
    name: 'torture on redis',
    command: npm('torture', '--store', 'redis', '--seconds', '120', '--seed', '1'),
    minutesMax: 8,
  },
  {
    name: 'torture with a cache',
    command: npm('torture', '--store', 'tiered', '--seconds', '90', '--seed', '1'),
    minutesMax: 8,
  },
  { name: 'mutants', command: npm('mutants'), minutesMax: 45 },
]

const { values } = parseArgs({ options: { only: { type: 'string' } } })
const wanted = values.only?.split(',') ?? ['']
const chosen = PARTS.filter(({ name }) => wanted.some(part => name.includes(part)))
if (whyNot !== undefined) console.log(`Node 22, 24 and 26 are left out: ${whyNot}`)
const { passed, failed } = await runParts(chosen, line => console.log(line))
process.exitCode = passed > 0 && failed === 0 ? 0 : 1
