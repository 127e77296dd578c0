import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itSurvivesCrashes } from './crashes.cases.ts'

describe('four processes on one SQLite file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-processes-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itSurvivesCrashes(() => join(directory, 'shop.db'))
})
