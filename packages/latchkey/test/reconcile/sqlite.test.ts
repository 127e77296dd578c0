import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itSettlesUnknowns } from './settle.cases.ts'

describe('an unknown payment on SQLite is settled', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-reconcile-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itSettlesUnknowns(() => join(directory, 'shop.db'))
})
