import { expect, it } from 'vitest'
import { dialect, recordingDialect } from '../sql/names.ts'
import { insertFreshLine, lineReturned, writeLines } from './lines.ts'

const line = { id: 'a', fence: '1', now: 'n', scope: 's', operation: 'o', fingerprint: 'f' }

it('adds nothing to a statement where no lines are wanted, and an insert where they are', () => {
  const plain = dialect('latchkey')
  expect([lineReturned(plain), writeLines(plain, 'done', '$5'), insertFreshLine(plain, line, 'outcome')]).toEqual([
    '',
    '',
    '',
  ])
  const recording = recordingDialect(plain)
  expect(lineReturned(recording)).toBe(', k as line')
  for (const text of [writeLines(recording, 'done', '$5'), insertFreshLine(recording, line, 'outcome')]) {
    expect(text).toContain('insert into "latchkey".audit_records')
  }
})
