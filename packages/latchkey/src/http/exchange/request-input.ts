/** What was asked: the fingerprint and the operator's line of a complete request. */
import { type FingerprintContext, fingerprintRequest } from '../../engine/fingerprint/fingerprint.ts'
import { essenceOf, isJson } from '../../engine/fingerprint/media-type.ts'
import { engine } from '../../engine/internal.ts'
import type { DeclaredOperation } from '../../engine/operation.ts'
import { describeInput } from '../../engine/run-function.ts'
import type { Settings } from '../../engine/options.ts'
import { headerValue, type RequestView } from './request.ts'

export interface WholeRequest<Context> {
  readonly view: RequestView<Context>
  readonly body: Uint8Array
}

export function fingerprintView<C>({ view, body }: WholeRequest<C>, operation: DeclaredOperation<C>): Uint8Array {
  return fingerprintRequest(
    {
      method: view.method.toUpperCase(),
      path: view.path,
      query: view.query,
      mediaType: headerValue(view, 'Content-Type'),
      header: name => headerValue(view, name),
      body,
    },
    operation[engine].settings.fingerprint,
    contextOf(operation),
  )
}

function contextOf<C>(operation: DeclaredOperation<C>): FingerprintContext | undefined {
  const { settings } = operation[engine]
  const named = settings.keyNamespace === 'scope' ? operation.name : undefined
  if (settings.fingerprint.include === undefined) return named === undefined ? undefined : { operation: named }
  return { operation: named, onMissing: path => reportMissing(operation, path) }
}

/** The paths that were reported, so that a misspelt one does not fill the log: each once for each operation. */
const reported = new WeakMap<object, Set<string>>()

function reportMissing<C>(operation: DeclaredOperation<C>, path: string): void {
  const paths = reported.get(operation) ?? new Set()
  if (paths.has(path)) return
  reported.set(operation, paths.add(path))
  operation[engine].shared.telemetry.report(
    `fingerprint.include names ${JSON.stringify(path)}, which a body does not have, so the whole body counts: ` +
      'correct the path, or move it to includeIfPresent if the field is optional',
    { operation: operation.name, detail: path },
  )
}

/** `describe` sees the parsed JSON body, or undefined where there is none: it is written for the input, not for bytes. */
export function describeRequest<C>(whole: WholeRequest<C>, settings: Settings<C>): string | undefined {
  return settings.describe === undefined ? undefined : describeInput(settings, jsonOf(whole))
}

function jsonOf({ view, body }: WholeRequest<unknown>): unknown {
  if (!isJson(essenceOf(headerValue(view, 'Content-Type')))) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}
