import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itSurvivesEveryPoint } from './crash-matrix.cases.ts'

describe('the crash matrix on SQLite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-crashes-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itSurvivesEveryPoint(() => join(directory, 'shop.db'))
})
