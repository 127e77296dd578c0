import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const IGNORED = new Set(['node_modules', '.git', 'dist', 'coverage', 'vectors', 'generated'])

/** Every file below `root/folder`, as sorted paths relative to the root with forward slashes. */
export function listFiles(root: string, folder = ''): string[] {
  const start = join(root, folder)
  if (!existsSync(start)) return []
  const found: string[] = []
  for (const entry of readdirSync(start, { withFileTypes: true })) {
    if (IGNORED.has(entry.name)) continue
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) found.push(...listFiles(root, path))
    else if (entry.isFile()) found.push(path)
  }
  return found.sort()
}

/** Every file below a folder, also those that `listFiles` ignores. */
export function listEvery(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return entries.map(entry => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/')).sort()
}

export function readText(root: string, file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

export const isTypeScript = (file: string): boolean => file.endsWith('.ts') || file.endsWith('.tsx')

export const isTest = (file: string): boolean => file.endsWith('.test.ts')

/** The folder of each workspace that holds code of ours, for example `packages/latchkey`, `examples/payments`, `bench`. */
export function listWorkspaces(root: string): string[] {
  const parents = ['packages', 'examples'].filter(parent => existsSync(join(root, parent)))
  const nested = parents.flatMap(parent => readdirSync(join(root, parent)).map(name => `${parent}/${name}`))
  return [...nested, 'bench'].filter(folder => existsSync(join(root, folder, 'package.json')))
}
