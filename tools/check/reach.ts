// What a user gets by importing a subpath: the folders of ours, the packages and the Node built-ins that it reaches,
// compared with the committed reach.json. A change there is a decision, so it shows up in review.
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CheckOptions, Finding } from './finding.ts'
import { readText } from './files.ts'
import { LIBRARY, reachFrom, sourceOf, subpathsOf } from './library.ts'

export const REACH_FILE = 'tools/check/reach.json'

type Reached = { folders: string[]; packages: string[]; node: string[] }

export async function checkReach({ root, update }: CheckOptions): Promise<Finding[]> {
  const actual = reachOfSubpaths(root)
  if (update) {
    writeFileSync(join(root, REACH_FILE), `${JSON.stringify(actual, null, 2)}\n`)
    return []
  }
  const committed = readCommitted(root)
  const subpaths = new Set([...Object.keys(actual), ...Object.keys(committed)])
  return [...subpaths].sort().flatMap(subpath => compare(subpath, committed[subpath], actual[subpath]))
}

function reachOfSubpaths(root: string): Record<string, Reached> {
  const entries = subpathsOf(root, LIBRARY).map(subpath => {
    const source = sourceOf(subpath)
    // A missing source is the exports check's finding; here it just reaches nothing.
    const reach = reachFrom(root, source !== undefined && existsSync(join(root, source)) ? [source] : [])
    const folders = new Set(reach.files.map(folderOf))
    return [subpath.subpath, { folders: [...folders].sort(), packages: reach.packages, node: reach.node }] as const
  })
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function compare(subpath: string, before: Reached | undefined, now: Reached | undefined): Finding[] {
  const fix = 'undo the import, or accept it with `npm run check -- --update` and give the reason in the commit'
  if (before === undefined) return [finding(`"${subpath}" is not in the list: run \`npm run check -- --update\``)]
  if (now === undefined) return [finding(`"${subpath}" is no longer exported: run \`npm run check -- --update\``)]
  return (['folders', 'packages', 'node'] as const).flatMap(kind => {
    const gained = now[kind].filter(name => !before[kind].includes(name)).map(name => `+${name}`)
    const lost = before[kind].filter(name => !now[kind].includes(name)).map(name => `-${name}`)
    const changes = [...gained, ...lost]
    return changes.length === 0 ? [] : [finding(`"${subpath}" reaches other ${kind} (${changes.join(' ')}): ${fix}`)]
  })
}

const finding = (message: string): Finding => ({ file: REACH_FILE, message })

function folderOf(file: string): string {
  const folder = dirname(file.slice(`${LIBRARY}/src/`.length))
  return folder === '.' ? 'src' : folder
}

function readCommitted(root: string): Record<string, Reached> {
  // Written by this check alone; a hand edit of another shape shows up as a difference.
  return JSON.parse(readText(root, REACH_FILE)) as Record<string, Reached>
}
