/** What an adapter shows of a request, and what is read from it. */
import type { Execution } from '../../engine/execution.ts'
import { type FingerprintContext, fingerprintRequest } from '../../engine/fingerprint/fingerprint.ts'
import { essenceOf, isJson } from '../../engine/fingerprint/body.ts'
import type { OperationEngine } from '../../engine/operation.ts'
import { fingerprintedName } from '../../engine/request.ts'
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
   * what there is. Called once, after the key and the scope have been checked and before anything is reserved. A rejection (upload cut
   * off) reaches the framework untouched.
   */
  body(bytesMax: number): Promise<BodyRead>
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

/** The field as one value; undefined when it is absent. Lines are joined as RFC 9110, section 5.3, allows. */
export function headerValue(view: RequestView<unknown>, name: string): string | undefined {
  const lines = view.header(name)
  return lines.length < 2 ? lines[0] : lines.join(', ')
}

type Owner<C> = OperationEngine<C, never>

export function fingerprintView<C>(owner: Owner<C>, view: RequestView<C>, body: Uint8Array): Uint8Array {
  return fingerprintRequest(
    {
      method: view.method.toUpperCase(),
      path: view.path,
      query: view.query,
      mediaType: headerValue(view, 'Content-Type'),
      header: name => headerValue(view, name),
      body,
    },
    owner.settings.fingerprint,
    fingerprintContext(owner),
  )
}

function fingerprintContext<C>(owner: Owner<C>): FingerprintContext | undefined {
  const operation = fingerprintedName(owner)
  if (owner.settings.fingerprint.include === undefined) return operation === undefined ? undefined : { operation }
  return { operation, onMissing: path => reportMissing(owner, path) }
}

/** The paths that were reported, so that a misspelt one does not fill the log: each once for each operation. */
const reported = new WeakMap<object, Set<string>>()

function reportMissing<C>(owner: Owner<C>, path: string): void {
  const paths = reported.get(owner) ?? new Set()
  if (paths.has(path)) return
  reported.set(owner, paths.add(path))
  owner.shared.telemetry.report(
    `fingerprint.include names ${JSON.stringify(path)}, which a body does not have, so the whole body counts: ` +
      'correct the path, or move it to includeIfPresent if the field is optional',
    { operation: owner.name, detail: path },
  )
}

/** The parsed JSON body, or undefined where there is none. */
export function jsonOf(view: RequestView<unknown>, body: Uint8Array): unknown {
  if (!isJson(essenceOf(headerValue(view, 'Content-Type')))) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

/** On the request itself: a WeakMap keyed by request costs GC time. */
const ofRequest: unique symbol = Symbol('latchkey: execution')

interface Executing {
  [ofRequest]?: Execution
}

/** Call it before the handler runs, with the object that the framework's handlers share: its request or its context. */
export function rememberExecution(request: object, execution: Execution): void {
  const executing: Executing = request
  executing[ofRequest] = execution
}

/**
 * The execution of the request that is being handled. Undefined where the request is not covered: its method is not one of `methods`, it
 * has no key where none is required, or it did not come through `idempotent()`. Name the type of an atomic operation's execution
 * yourself, `executionOf<AtomicExecution<Tx>>(…)`: the request does not carry it.
 */
export function executionOf<X extends Execution = Execution>(request: object): X | undefined {
  const executing: Executing = request
  return executing[ofRequest] as X | undefined // as the caller declares it
}
