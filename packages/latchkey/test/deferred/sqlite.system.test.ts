import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itEndsOnce } from './kills.cases.ts'

describe('a deferred export on one SQLite file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-deferred-'))
  itEndsOnce(() => join(directory, 'shop.db'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
})
