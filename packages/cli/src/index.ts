/** What `latchkey.config.ts` is written with. */
export type { Application, Config, Profile } from './config/config.ts'

import type { Config } from './config/config.ts'

/** Returns what it is given: for its types. */
export function defineConfig(config: Config): Config {
  return config
}
