/** Programs in one file each: they start in a fifth of the time, and a source that is edited during a run does not change the run. */
import { readFileSync, rmSync } from 'node:fs'
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

/** A part of a source that is replaced in the bundle, and only there. */
export interface Change {
  /** How the path of the source ends. */
  readonly file: string
  /** Exact text, which occurs once. */
  readonly find: string
  readonly replace: string
}

function changing(changes: readonly Change[]): Plugin {
  return {
    name: 'changes',
    setup(building) {
      for (const { file, find, replace } of changes) {
        const filter = new RegExp(`${file.replaceAll('.', '\\.')}$`)
        building.onLoad({ filter }, ({ path }) => {
          const [before, after, ...more] = readFileSync(path, 'utf8').split(find)
          if (after === undefined || more.length > 0) throw new Error(`${file} must contain this once: ${find}`)
          return { contents: `${before}${replace}${after}`, loader: 'ts' }
        })
      }
    },
  }
}

export async function bundle(rig: string, sources: readonly URL[], changes: readonly Change[] = []): Promise<Bundle> {
  const folder = `${cache}latchkey-${rig}/${process.pid}/`
  await build({
    entryPoints: sources.map(source => fileURLToPath(source)),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['latchkey-source'],
    plugins: [packagesStayOutside, changing(changes)],
    outdir: folder,
    // Sources of several folders, side by side.
    entryNames: '[name]',
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  return {
    pathOf: name => `${folder}${name}.mjs`,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
