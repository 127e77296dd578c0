import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createLatchkey } from 'latchkey'
import { memoryStore } from 'latchkey/stores/memory'
import { itDefers } from './deferred.cases.ts'

describe('deferred work on SQLite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-deferred-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itDefers(() => join(directory, 'shop.db'))
})

describe('deferred work', () => {
  it('needs a store that keeps steps', () => {
    const latchkey = createLatchkey({ store: memoryStore(), scope: () => 'acme' })
    expect(() => latchkey.deferred('exports.create', { deadlineMs: 1 }, async () => undefined as never)).toThrow(
      'the memory store has no transactions',
    )
  })
})
