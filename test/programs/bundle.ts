/** Programs in one file each: they start in a fifth of the time, and a source that is edited during a run does not change the run. */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

export interface Bundle {
  /** The bundled file of a source, by the source's name without its ending. */
  readonly pathOf: (name: string) => string
  remove(): void
}

/** Not in the sources, and not in what is packed. */
const cache = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))

/** Only our own sources go into the file. A package is loaded from where the source that imports it would find it. */
const packagesStayOutside: Plugin = {
  name: 'packages-stay-outside',
  setup(building) {
    const resolved = {}
    building.onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData }) => {
      const isOurs = path === 'latchkey' || path.startsWith('latchkey/') || path.startsWith('@latchkey/')
      if (isOurs || kind === 'entry-point' || pluginData === resolved) return undefined
      const found = await building.resolve(path, { kind, resolveDir, pluginData: resolved })
      return { path: found.path, external: true, errors: found.errors }
    })
  },
}

export async function bundle(rig: string, sources: readonly URL[]): Promise<Bundle> {
  const folder = `${cache}latchkey-${rig}/${process.pid}/`
  await build({
    entryPoints: sources.map(source => fileURLToPath(source)),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['latchkey-source'],
    plugins: [packagesStayOutside],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  return {
    pathOf: name => `${folder}${name}.mjs`,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
