// npm run runtimes                    the tests that need no server (npm run test:fast), on every Node of test/runtimes
// npm run runtimes -- --only 26       on the versions that begin with one of these, separated by commas
// npm run runtimes -- -- stores/sqlite   what follows the second `--` goes to the test runner
// The last line is `N passed, M failed`, of versions, and the exit code is 0 only if something passed and nothing failed.
import { parseArgs } from 'node:util'
import { installRuntimes } from './runtimes/install.ts'
import { whyNoRuntimes } from './runtimes/platform.ts'
import { runOnEach } from './runtimes/run-on-each.ts'

const { values, positionals } = parseArgs({ options: { only: { type: 'string' } }, allowPositionals: true })
const why = whyNoRuntimes()
if (why !== undefined) throw new Error(`There is nothing to run: ${why}`)

const wanted = values.only?.split(',') ?? ['']
const runtimes = (await installRuntimes()).filter(({ version }) => wanted.some(start => version.startsWith(start)))
const args = ['--import', 'tsx', 'tools/test.ts', '--fast', ...positionals]
const { passed, failed } = await runOnEach(runtimes, args, line => console.log(line))
process.exitCode = passed > 0 && failed === 0 ? 0 : 1
