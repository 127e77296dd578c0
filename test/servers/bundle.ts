/** Programs in one file each: they start in a fifth of the time, and a source that is edited during a run does not change the run. */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface Bundle {
  /** The bundled file of a source, by the source's name without its ending. */
  readonly pathOf: (name: string) => string
  remove(): void
}

/** Below the repository's node_modules, so that what stays outside the file is found from there. */
const cache = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))

export async function bundle(rig: string, sources: readonly URL[]): Promise<Bundle> {
  const folder = `${cache}latchkey-${rig}/${process.pid}/`
  await build({
    entryPoints: sources.map(source => fileURLToPath(source)),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['latchkey-source'],
    external: ['pg', 'ioredis', 'redis', 'hono', 'hono/*', '@hono/node-server'],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  return {
    pathOf: name => `${folder}${name}.mjs`,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
