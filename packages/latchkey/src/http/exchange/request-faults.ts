/**
 * What is wrong with a request before anything is claimed. The client gets what it can act on; what the developer can do goes to the log.
 */
import type { OperationEngine } from '../../engine/operation.ts'
import type { Problem } from '../../wire/problem.ts'
import type { BodyRead } from './request.ts'

type Owner<C> = OperationEngine<C, never>

/** Undefined: the operation runs without a key as well, unprotected. */
export function missingKey<C>({ name, settings, shared }: Owner<C>): Problem | undefined {
  const { onMissingKey, key } = settings
  if (onMissingKey === 'refuse') return { code: 'missing-key', header: 'header' in key ? key.header : null }
  shared.telemetry.count('unprotected', { operation: name, detail: 'missing-key' })
  return undefined
}

export function unusableBody<C>(
  { name, shared }: Owner<C>,
  body: Exclude<BodyRead, { readonly kind: 'bytes' }>,
): Problem {
  if (body.kind === 'too-large') return { code: 'body-too-large', max: body.max, unit: body.unit }
  const code = body.kind === 'unsupported' ? 'body-unsupported' : 'body-unreadable'
  shared.telemetry.report(`answered ${code}: ${body.cure}`, { operation: name, detail: code })
  return { code }
}

const scopeReport =
  'the scope could not be resolved, so the request was refused: the scope function of createLatchkey must return the tenant of the authenticated caller'

export function reportScope<C>({ name, shared }: Owner<C>, error: unknown): void {
  shared.telemetry.report(scopeReport, { operation: name, error })
}

/** The paths that were reported, so that a misspelt one does not fill the log: each once for each operation. */
const reported = new WeakMap<object, Set<string>>()

export function reportMissingPath<C>(owner: Owner<C>, path: string): void {
  const paths = reported.get(owner) ?? new Set()
  if (paths.has(path)) return
  reported.set(owner, paths.add(path))
  owner.shared.telemetry.report(
    `fingerprint.include names ${JSON.stringify(path)}, which a body does not have, so the whole body counts: ` +
      'correct the path, or move it to includeIfPresent if the field is optional',
    { operation: owner.name, detail: path },
  )
}
