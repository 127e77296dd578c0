/** Runs a flow in a process of its own, on sources that report their calls. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'
import type { Report } from './flow.ts'
import { instrument, type TracedFunction } from './instrument.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const library = 'packages/latchkey/src/'
const flowMsMax = 60_000

export interface Walk {
  readonly files: number
  /** The files, as the request comes to them. */
  readonly order: readonly string[]
  readonly functions: number
  readonly calls: number
  /** From the request's first library function to the first statement it sends, outermost first. */
  readonly path: readonly TracedFunction[]
}

export async function readFlow(program: string, databaseUrl: string): Promise<Walk> {
  // Below the repository's node_modules, so that what stays outside the bundle is found from there.
  const folder = mkdtempSync(join(root, 'node_modules/.cache-walk-'))
  try {
    const functions: TracedFunction[] = []
    const outfile = join(folder, 'flow.mjs')
    await build({
      entryPoints: [program],
      ...{ bundle: true, platform: 'node', format: 'esm', target: 'node20', outfile, logLevel: 'warning' },
      conditions: ['latchkey-source'],
      external: ['pg', 'express', 'hono', 'hono/*'],
      inject: [join(root, 'tools/walk/trace.ts')],
      plugins: [instrumented(functions)],
    })
    return walkOf(await run(outfile, databaseUrl), functions)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function instrumented(functions: TracedFunction[]): Plugin {
  return {
    name: 'instrumented',
    setup(bundler) {
      bundler.onLoad({ filter: /packages[\\/]latchkey[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        const file = relative(join(root, library), path)
        return { contents: instrument(file, readFileSync(path, 'utf8'), functions), loader: 'ts' }
      })
    },
  }
}

async function run(program: string, databaseUrl: string): Promise<Report> {
  const child = fork(program, [databaseUrl], { stdio: 'inherit' })
  const limit = setTimeout(() => child.kill('SIGKILL'), flowMsMax)
  let report: Report | undefined
  // The only message that this process sends.
  child.on('message', message => (report = message as Report))
  const [code] = (await once(child, 'exit')) as [number | null]
  clearTimeout(limit)
  if (code !== 0 || report === undefined) throw new Error(`${program} ended with ${code}, and without a trace`)
  return report
}

function walkOf({ calls, path }: Report, functions: readonly TracedFunction[]): Walk {
  const order = [...new Set(calls.flatMap(number => functions[number]?.file ?? []))]
  return {
    files: order.length,
    order,
    functions: new Set(calls).size,
    calls: calls.length,
    path: path.flatMap(number => functions[number] ?? []),
  }
}
