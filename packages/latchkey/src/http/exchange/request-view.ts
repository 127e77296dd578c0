/** What an adapter shows of a request. The exchange reads nothing else, so an adapter is little more than one of these. */
export interface RequestView<Context> {
  /** Handed to `scope` and `authorizeReplay` as it is. */
  readonly context: Context
  readonly method: string
  /** As sent, without the query. */
  readonly path: string
  /** As sent, without the question mark; empty when there is none. */
  readonly query: string
  /** Every line of the field in the order received; empty when it is absent. */
  header(name: string): readonly string[]
  /**
   * The complete body, of at most `bytesMax` bytes: an adapter that reads it stops there, and one whose framework has read it hands
   * over what there is. Asked for once, after the key and the scope are known to be fine and before anything is reserved. A rejection
   * (upload cut off) reaches the framework untouched.
   */
  body(bytesMax: number): Promise<BodyRead>
}

export type BodyRead =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'too-large'; readonly bytesMax: number }
  /** Somebody consumed it first. `cure`: one sentence that names the way out. */
  | { readonly kind: 'unreadable'; readonly cure: string }

/** The field as one value; undefined when it is absent. Lines are joined as RFC 9110, section 5.3, allows. */
export function headerValue(view: RequestView<unknown>, name: string): string | undefined {
  const lines = view.header(name)
  return lines.length < 2 ? lines[0] : lines.join(', ')
}
