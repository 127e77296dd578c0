/**
 * The process that is started again and again, in one file: it then starts in a fifth of the time, which on a small machine decides whether it
 * gets to do anything before it is killed; and a source that is edited during a run does not change the run.
 */
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface Bundle {
  readonly app: string
  readonly clockOff: string
  remove(): void
}

/** Below the repository's node_modules, so that what stays outside the file is found from there. */
const folder = fileURLToPath(new URL('../../node_modules/.cache/latchkey-torture/', import.meta.url))

export async function bundleApp(): Promise<Bundle> {
  const out = `${folder}${process.pid}/`
  await build({
    entryPoints: ['app.ts', 'clock-off.ts'].map(name => fileURLToPath(new URL(name, import.meta.url))),
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
  const remove = () => rmSync(out, { recursive: true, force: true })
  return { app: `${out}app.mjs`, clockOff: `${out}clock-off.mjs`, remove }
}
