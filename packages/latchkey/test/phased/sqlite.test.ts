import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itSettlesDoubts } from './settle.cases.ts'
import { itRunsInPhases } from './steps.cases.ts'

describe('phased work on SQLite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-phased-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itRunsInPhases(() => join(directory, 'shop.db'))
  describe('in doubt', () => itSettlesDoubts(() => join(directory, 'doubts.db')))
})
