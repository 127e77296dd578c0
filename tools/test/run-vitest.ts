// Runs vitest with the given arguments and reports the results to the parent process. See supervise.ts.
import { configDefaults } from 'vitest/config'
import { parseCLI, startVitest } from 'vitest/node'
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node'
import type { FileReport, Message, Skipped } from './messages.ts'

// Without the supervisor, no process would stop this one or read the result.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'))

function send(message: Message): Promise<void> {
  return new Promise(resolve => process.send?.(message, () => resolve()))
}

const toSupervisor: Reporter = {
  onTestModuleEnd: module => send({ kind: 'file', report: reportOf(module) }),
  onTestRunEnd: (_modules, unhandledErrors) => send({ kind: 'end', unhandledErrors: unhandledErrors.length }),
}

function reportOf(module: TestModule): FileReport {
  const tests = [...module.children.allTests()]
  const broken = [...module.children.allSuites()]
    .filter(suite => suite.errors().length > 0)
    .map(suite => suite.fullName)
  // A test still pending was under way when its process died.
  const failed = tests.filter(test => ['failed', 'pending'].includes(test.result().state)).map(test => test.fullName)
  return {
    file: module.relativeModuleId,
    passed: tests.filter(test => test.result().state === 'passed').length,
    failed: [...(module.errors().length > 0 ? ['the file itself'] : []), ...broken, ...failed],
    skipped: topmostSkipped(module),
  }
}

function topmostSkipped(parent: TestModule | TestSuite): Skipped[] {
  return [...parent.children].flatMap(child => {
    if (child.type === 'test') return child.result().state === 'skipped' ? [{ name: nameAndNote(child), tests: 1 }] : []
    const tests = [...child.children.allTests()]
    const all = tests.length > 0 && tests.every(test => test.result().state === 'skipped')
    return all ? [{ name: child.fullName, tests: tests.length }] : topmostSkipped(child)
  })
}

function nameAndNote(test: TestCase): string {
  const result = test.result()
  return result.state === 'skipped' && result.note !== undefined ? `${test.fullName} [${result.note}]` : test.fullName
}

const { filter, options } = parseCLI(['vitest', 'run', ...process.argv.slice(2)])
const shown = [options.reporters ?? 'default'].flat()
// As on vitest's own command line, what is excluded there comes on top of node_modules and its like.
const exclude = [...configDefaults.exclude, ...(options.exclude ?? [])]
await startVitest('test', filter, { ...options, exclude, watch: false, reporters: [...shown, toSupervisor] })
process.exit()
