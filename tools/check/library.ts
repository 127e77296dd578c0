// The package.json of each package, its subpaths, and the modules each of them reaches.
import { existsSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { isBuiltin } from 'node:module'
import { isTypeScript, listWorkspaces, readText } from './files.ts'
import { importsOf, readSource } from './syntax.ts'

export const LIBRARY = 'packages/latchkey'

/** The folders of the packages that are published. */
export function listPackages(root: string): string[] {
  return listWorkspaces(root).filter(folder => folder.startsWith('packages/'))
}

export type Conditions = Record<string, string>

export type Manifest = {
  name?: string
  exports?: Record<string, string | Conditions>
  bin?: string | Record<string, string>
  scripts?: Record<string, string>
  dependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

export type Subpath = { folder: string; subpath: string; specifier: string; conditions: Conditions }

export type Reach = { files: string[]; packages: string[]; node: string[]; missing: { file: string; line: number }[] }

export function readManifest(root: string, folder: string): Manifest {
  // Written by npm and read by it too: a package.json of another shape fails long before these checks.
  return JSON.parse(readText(root, `${folder}/package.json`)) as Manifest
}

/** The importable subpaths of the package in a folder, without plain files such as `./package.json`. */
export function subpathsOf(root: string, folder: string): Subpath[] {
  const { name = '', exports = {} } = readManifest(root, folder)
  return Object.entries(exports).flatMap(([subpath, conditions]) => {
    if (typeof conditions === 'string') return []
    return [{ folder, subpath, specifier: posix.join(name, subpath), conditions }]
  })
}

/** The source file a subpath names, relative to the root. */
export function sourceOf(subpath: Subpath): string | undefined {
  const source = subpath.conditions['latchkey-source']
  return source === undefined ? undefined : posix.join(subpath.folder, source)
}

/** The file that a relative specifier means, relative to the root; `./a.js` means `./a.ts` where only that exists. */
export function resolveRelative(root: string, from: string, specifier: string): string | undefined {
  const target = posix.join(dirname(from), specifier)
  const candidates = [target, target.replace(/\.js$/, '.ts'), `${target}.ts`, `${target}/index.ts`]
  return candidates.find(candidate => /\.\w+$/.test(candidate) && existsSync(join(root, candidate)))
}

/** The package part of a module name: `pg` of `pg/lib/x`, `@a/b` of `@a/b/c`. */
export function packageOf(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/')
  return first.startsWith('@') ? `${first}/${second}` : first
}

export const isRelative = (specifier: string): boolean => specifier.startsWith('.')

/** Everything reachable from the entry files by imports of any kind; types count, because a .d.ts asks for them. */
export function reachFrom(
  root: string,
  entries: readonly string[],
  extra: (file: string) => string[] = () => [],
): Reach {
  const files = new Set<string>()
  const packages = new Set<string>()
  const node = new Set<string>()
  const missing: Reach['missing'] = []
  const queue = [...entries]
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (files.has(file)) continue
    files.add(file)
    if (!isTypeScript(file)) continue
    queue.push(...extra(file))
    for (const { specifier, line } of importsOf(readSource(root, file))) {
      if (isBuiltin(specifier)) node.add(specifier)
      else if (!isRelative(specifier)) packages.add(packageOf(specifier))
      else {
        const target = resolveRelative(root, file, specifier)
        if (target === undefined) missing.push({ file, line })
        else queue.push(target)
      }
    }
  }
  return { files: [...files].sort(), packages: [...packages].sort(), node: [...node].sort(), missing }
}
