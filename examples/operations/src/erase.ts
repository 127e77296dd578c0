import type { Latchkey } from 'latchkey'

/** Erases a tenant, and returns how many of its rows and messages are still open. Run it again when they have ended, or let the workers do it. */
export async function erase(latchkey: Pick<Latchkey<unknown, never>, 'erase'>, scope: string): Promise<number> {
  const { rows, messages, auditTexts, openRows, waitingMessages } = await latchkey.erase({
    scope,
    onProgress: erased => console.log(`${erased.rows} rows so far`),
  })
  console.log(`erased ${rows} rows, ${messages} messages and the texts of ${auditTexts} entries of the audit`)
  return openRows + waitingMessages
}
