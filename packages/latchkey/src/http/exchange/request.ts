import type { BodyUnit } from '../../wire/problem.ts'

/** What an adapter shows of a request. The exchange reads nothing else, so an adapter is little more than one of these. */
export interface RequestView<Context> {
  /** Passed to `scope` and `authorizeReplay` as it is. */
  readonly context: Context
  readonly method: string
  /** As sent, without the query. */
  readonly path: string
  /** As sent, without the question mark; empty when there is none. */
  readonly query: string
  /** Every line of the field in the order received; empty when it is absent. */
  header(name: string): readonly string[]
  /**
   * The complete body, of at most `bytesMax` bytes: an adapter that reads it stops there, and one whose framework has read it returns
   * what there is, at once or as a promise. Called once, before anything is reserved: after the key and the scope have been checked, or before
   * the key is read where a function of the operation reads it. A rejection (upload cut off) reaches the framework untouched.
   */
  body(bytesMax: number): BodyRead | Promise<BodyRead>
}

export type BodyRead =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'too-large'; readonly max: number; readonly unit: BodyUnit }
  /** What is left of a body of this type, or with these values, may be equal although the bodies differ. `cure`: for the developer. */
  | { readonly kind: 'unsupported'; readonly cure: string }
  /** It was consumed before Latchkey. `cure`: one sentence for the developer that names the way out. */
  | { readonly kind: 'unreadable'; readonly cure: string }

/** Over a limit of bytes; a limit of levels is the parser's to report. */
export function tooLarge(bytesMax: number): Extract<BodyRead, { kind: 'too-large' }> {
  return { kind: 'too-large', max: bytesMax, unit: 'bytes' }
}

/** The same request, with its body read. */
export function withBody<C>(view: RequestView<C>, body: BodyRead): RequestView<C> {
  const { context, method, path, query } = view
  return { context, method, path, query, header: name => view.header(name), body: () => body }
}
