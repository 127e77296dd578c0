/** What is stored and replayed. */

/** Name and value as the handler set them; a name may appear more than once (Link, Vary). */
export type Header = readonly [name: string, value: string]

export interface Outcome {
  /** HTTP status. A plain function's value is a 200, `undefined` a 204. */
  readonly status: number
  readonly headers: readonly Header[]
  /** The exact bytes; absent only when they were over the cap, then a replay says so and nothing runs again. */
  readonly body: Uint8Array | undefined
  /** The operation's outcome version at the time it was stored; `upgrade` may lift an old one. */
  readonly version: number
}
