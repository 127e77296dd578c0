/** The application in one file: what is measured is its memory, and not that of a compiler beside it. */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface Bundle {
  readonly app: string
  remove(): void
}

/** Below the repository's node_modules, so that what stays outside the file is found from there. */
const folder = fileURLToPath(new URL('../../node_modules/.cache/latchkey-siege/', import.meta.url))

export async function bundleApp(): Promise<Bundle> {
  const out = `${folder}${process.pid}/`
  await build({
    entryPoints: [fileURLToPath(new URL('app.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['latchkey-source'],
    external: ['pg', 'hono', 'hono/*', '@hono/node-server'],
    outdir: out,
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  })
  return { app: `${out}app.mjs`, remove: () => rmSync(out, { recursive: true, force: true }) }
}
