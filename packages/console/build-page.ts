import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const CONFIG = fileURLToPath(new URL('vite.config.ts', import.meta.url))

/** Builds the page of the console into `out`. Default: where `consoleFiles()` looks for it. */
export async function buildPage(out?: string): Promise<void> {
  await build({ configFile: CONFIG, ...(out === undefined ? {} : { build: { outDir: out } }) })
}
