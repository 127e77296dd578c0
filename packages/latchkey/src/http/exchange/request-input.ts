/** What was asked: the fingerprint and the operator's line of a complete request. */
import { fingerprintRequest, type FingerprintOptions } from '../../engine/fingerprint/fingerprint.ts'
import { describeInput } from '../../engine/plain-function.ts'
import type { Settings } from '../../engine/settings.ts'
import { headerValue, type RequestView } from './request-view.ts'

export interface WholeRequest<Context> {
  readonly view: RequestView<Context>
  readonly body: Uint8Array
}

export function fingerprintView(
  { view, body }: WholeRequest<unknown>,
  options: FingerprintOptions,
  operation?: string,
): Uint8Array {
  return fingerprintRequest(
    {
      method: view.method.toUpperCase(),
      path: view.path,
      query: view.query,
      mediaType: headerValue(view, 'Content-Type'),
      header: name => headerValue(view, name),
      body,
    },
    options,
    operation,
  )
}

/** `describe` sees the parsed JSON body, or undefined where there is none: it is written for the input, not for bytes. */
export function describeRequest<C>(whole: WholeRequest<C>, settings: Settings<C>): string | undefined {
  return settings.describe === undefined ? undefined : describeInput(settings, jsonOf(whole))
}

function jsonOf({ view, body }: WholeRequest<unknown>): unknown {
  const essence = headerValue(view, 'Content-Type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (essence !== 'application/json' && !essence.endsWith('+json')) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}
