import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itWorksInProcesses } from './processes.cases.ts'

describe('worker processes on one SQLite file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-workers-'))
  itWorksInProcesses(() => join(directory, 'shop.db'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
})
