import type { KeyRecord, Operators } from 'latchkey'

/** Everything that waits for evidence or for a person, page by page. */
export async function* waiting(latchkey: Operators): AsyncGenerator<KeyRecord> {
  for (const filter of [{ state: 'unknown' }, { parked: true }] as const) {
    let after: string | undefined
    do {
      const { records, next } = await latchkey.list({
        ...filter,
        limit: 200,
        ...(after === undefined ? {} : { after }),
      })
      yield* records
      after = next
    } while (after !== undefined)
  }
}
