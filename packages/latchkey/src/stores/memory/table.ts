/** Rows by key, and drafts of them: a transaction writes to its own draft, which no other caller sees before the commit. */

/** What a Map is, and a draft of one. */
export interface Table<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): unknown
  delete(key: string): unknown
  entries(): Iterable<readonly [string, Value]>
  values(): Iterable<Value>
}

export interface Draft<Value> extends Table<Value> {
  /** A row that was written here has been replaced in the table below by another writer. */
  isStale(): boolean
  /** Writes everything to the table below. */
  apply(): void
}

interface Change<Value> {
  /** What the table below held when it was first written here. */
  readonly before: Value | undefined
  /** Absent: deleted. */
  readonly after: { readonly value: Value } | undefined
}

export function draftOf<Value>(below: Table<Value>): Draft<Value> {
  const changes = new Map<string, Change<Value>>()
  const change = (key: string, after: Change<Value>['after']) => {
    const known = changes.get(key)
    changes.set(key, { before: known === undefined ? below.get(key) : known.before, after })
  }
  const get = (key: string) => {
    const known = changes.get(key)
    return known === undefined ? below.get(key) : known.after?.value
  }
  function* entries(): Iterable<readonly [string, Value]> {
    const seen = new Set<string>()
    for (const [key, value] of below.entries()) {
      seen.add(key)
      const known = changes.get(key)
      if (known === undefined) yield [key, value]
      else if (known.after !== undefined) yield [key, known.after.value]
    }
    for (const [key, { after }] of changes) if (after !== undefined && !seen.has(key)) yield [key, after.value]
  }
  return {
    get,
    set: (key, value) => change(key, { value }),
    delete: key => change(key, undefined),
    entries,
    *values() {
      for (const [, value] of entries()) yield value
    },
    isStale: () => [...changes].some(([key, { before }]) => below.get(key) !== before),
    apply() {
      for (const [key, { after }] of changes) {
        if (after === undefined) below.delete(key)
        else below.set(key, after.value)
      }
    },
  }
}
