import { configDefaults, defineConfig } from 'vitest/config'
import { PROOF_FILES } from './test/servers/shared-server.ts'

// Workspace packages resolve to their sources, so no build precedes a test.
// Vitest hands these to its workers as `node --conditions`; "import" among them would make require() load ES modules.
const conditions = ['latchkey-source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      'packages/*/{src,test}/**/*.test.ts',
      'examples/*/{src,test}/**/*.test.ts',
      'bench/src/**/*.test.ts',
      'torture/src/**/*.test.ts',
      'siege/src/**/*.test.ts',
      'mutants/src/**/*.test.ts',
      'tools/**/*.test.ts',
      'test/**/*.test.ts',
    ],
    exclude: [...configDefaults.exclude, PROOF_FILES],
    globalSetup: ['test/servers/global-setup.ts'],
    // Processes, not threads: suites start, signal and kill things. Four at a time on two cores: most of them wait for leases and
    // deadlines. Not more, because the tests are about races and a machine out of breath finds fewer of them.
    pool: 'forks',
    maxWorkers: 4,
    // A process takes one file after another and loads each module once: with a process per file, half of the time was loading.
    isolate: false,
    setupFiles: ['test/platform-classes.ts'],
    // What the default telemetry writes about faults that a test makes on purpose. Tests about these lines read console.warn itself.
    onConsoleLog: line => !line.startsWith('[latchkey] '),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The default of one second is shorter than a page or a process may take on a busy machine.
    expect: { poll: { timeout: 20_000 } },
  },
})
