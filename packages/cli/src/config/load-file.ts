/** Reads one configuration file: JSON, a module, or a module in TypeScript. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { usage } from '../program/exit.ts'
import { checkedConfig, type Config } from './config.ts'

export async function loadConfigFile(file: string): Promise<Config> {
  return checkedConfig(file, file.endsWith('.json') ? parsed(file) : await imported(file))
}

function parsed(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw usage(`${file} cannot be read as JSON: ${(error as Error).message}`)
  }
}

async function imported(file: string): Promise<unknown> {
  const module = await (file.endsWith('.ts') ? importTypeScript(file) : importFile(file))
  if (typeof module === 'object' && module !== null && 'default' in module) return module.default
  throw usage(`${file} has no default export: write export default defineConfig({ … })`)
}

/** Node itself strips types from 22.18 on. Before that, the tsx of the project does. */
async function importTypeScript(file: string): Promise<unknown> {
  const tsx = await tsxOf(file)
  if (tsx !== undefined) return tsx.tsImport(pathToFileURL(file).href, import.meta.url)
  if ('typescript' in process.features && process.features.typescript) return importFile(file)
  throw usage(
    `${file}: Node ${process.versions.node} does not read TypeScript. Run npm i -D tsx, use Node 22.18 or later, or call the file latchkey.config.js`,
  )
}

/** The part of tsx that is called. */
interface Tsx {
  tsImport(specifier: string, from: string): Promise<unknown>
}

async function tsxOf(file: string): Promise<Tsx | undefined> {
  const api = resolvedTsx(file)
  // Its other members are not called.
  return api === undefined ? undefined : ((await import(pathToFileURL(api).href)) as Tsx)
}

/** Resolved as by require, which a module can do from another folder; what is loaded is the module beside it. */
function resolvedTsx(file: string): string | undefined {
  try {
    return createRequire(file)
      .resolve('tsx/esm/api')
      .replace(/\.cjs$/, '.mjs')
  } catch {
    return undefined
  }
}

async function importFile(file: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(file).href)
  } catch (error) {
    throw usage(`${file} cannot be loaded: ${(error as Error).message}`)
  }
}
