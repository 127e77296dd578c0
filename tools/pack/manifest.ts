/** What package.json says to users: the workspace's own file, without what only the repository can follow. */

export type SourceManifest = {
  readonly name: string
  readonly version: string
  readonly private?: unknown
  readonly scripts?: unknown
  readonly devDependencies?: unknown
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly [field: string]: unknown
}

/** The workspace runs from its sources by this condition. They are not packed. */
export const SOURCE_CONDITION = 'latchkey-source'

export function packedManifest(manifest: SourceManifest): SourceManifest {
  const { private: _private, scripts: _scripts, devDependencies: _tools, ...told } = manifest
  const exports = Object.entries(manifest.exports).map(([subpath, target]) => [subpath, withoutSource(target)])
  return { ...told, exports: Object.fromEntries(exports) }
}

function withoutSource(target: string | Readonly<Record<string, string>>) {
  if (typeof target === 'string') return target
  return Object.fromEntries(Object.entries(target).filter(([condition]) => condition !== SOURCE_CONDITION))
}
