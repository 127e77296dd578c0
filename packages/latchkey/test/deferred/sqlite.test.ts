import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itDefers } from './deferred.cases.ts'

describe('deferred work on SQLite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-deferred-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itDefers(() => join(directory, 'shop.db'))
})
