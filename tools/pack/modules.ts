/** The built files that a package's subpaths reach: a declaration that no public one names would only be weight. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SourceManifest } from './manifest.ts'

/** Paths relative to the package's folder. */
export function reachedModules(folder: string, { exports }: SourceManifest): string[] {
  const queue = Object.values(exports).flatMap(target =>
    typeof target === 'string' ? [] : [target['types'] ?? '', target['default'] ?? ''],
  )
  const reached = new Set<string>()
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const file = join(next)
    if (reached.has(file)) continue
    if (!existsSync(join(folder, file)))
      throw new Error(`${folder} has no ${file}: build it first, or correct "exports"`)
    reached.add(file)
    queue.push(...importedBy(readFileSync(join(folder, file), 'utf8'), file))
  }
  return [...reached].sort()
}

/** The declarations of the subpaths, relative to the package's folder. */
export function declaredEntries({ exports }: SourceManifest): string[] {
  return Object.values(exports).flatMap(target => (typeof target === 'string' ? [] : [join(target['types'] ?? '')]))
}

/** `import './a.js'`, `from './a.js'`, `import('./a.js')`: in a declaration it means ./a.d.ts. */
function importedBy(text: string, file: string): string[] {
  return [...text.matchAll(/\b(?:from|import)\b\s*\(?\s*["'](\.[^"']+)["']/g)].map(([, specifier = '']) => {
    const target = join(dirname(file), specifier)
    return file.endsWith('.d.ts') ? target.replace(/\.[jt]s$/, '.d.ts') : target
  })
}
