/** Drivers are the application's: they are looked for in its folder first, then beside this program. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { usage } from '../program/exit.ts'

/** `names`: any of them will do. */
export async function loadDriver(cwd: string, names: readonly string[], store: string): Promise<unknown> {
  for (const name of names) {
    const file = resolvedIn(join(cwd, 'package.json'), name) ?? resolvedIn(import.meta.url, name)
    if (file !== undefined) return import(pathToFileURL(file).href)
  }
  const [first = ''] = names
  const others = names.slice(1).map(name => ` or ${name}`)
  throw usage(
    `the driver of ${store} is missing: run npm i ${first}${others.join('')} in this project, or npx -p @latchkey/cli -p ${first} latchkey …`,
  )
}

function resolvedIn(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name)
  } catch {
    return undefined
  }
}

/** A module of either kind: its members are its own, or those of its default export. */
export function memberOf(module: unknown, name: string): unknown {
  const given = module as Record<string, unknown> & { readonly default?: Record<string, unknown> }
  return given[name] ?? given.default?.[name] ?? given.default
}
