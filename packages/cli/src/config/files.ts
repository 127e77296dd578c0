/** Which files configure a call: the nearest one up to the root of the package, and the user's own. */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

export const configNames = [
  'latchkey.config.ts',
  'latchkey.config.js',
  'latchkey.config.mjs',
  'latchkey.config.json',
] as const

/** Undefined: there is none between here and the root of the package, or of the file system. */
export function nearestConfig(cwd: string): string | undefined {
  const found = configNames.map(name => join(cwd, name)).find(file => existsSync(file))
  if (found !== undefined) return found
  const above = dirname(cwd)
  if (above === cwd || existsSync(join(cwd, 'package.json'))) return undefined
  return nearestConfig(above)
}

export function userConfig(env: NodeJS.ProcessEnv): string | undefined {
  const home = env['XDG_CONFIG_HOME'] ?? join(env['HOME'] ?? homedir(), '.config')
  const names = ['config.ts', 'config.js', 'config.mjs', 'config.json']
  return names.map(name => join(home, 'latchkey', name)).find(file => existsSync(file))
}
