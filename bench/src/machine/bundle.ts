/**
 * Bundles the programs that are measured. The loader that runs the benchmark itself gives every inner function its name
 * at run time, which costs a request a fifth of its time and is not there in the published package.
 */
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface Programs {
  readonly server: string
  readonly load: string
  readonly outbox: string
  readonly consumers: string
  readonly operators: string
  readonly publishers: string
  readonly fingerprint: string
  /** What that program measures: a file of the library. */
  readonly fingerprintCode: string
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** Inside node_modules: ignored by git, and module names resolve as they do for the benchmark's own code. */
const directory = `${root}node_modules/.cache/latchkey-bench`
const sources = {
  server: '../server/server.ts',
  load: '../load/load-process.ts',
  outbox: '../outbox/process.ts',
  consumers: '../consumers/process.ts',
  operators: '../operators/process.ts',
  publishers: '../publishers/process.ts',
  fingerprint: '../fingerprint/process.ts',
  fingerprintCode: '../../../packages/latchkey/src/engine/fingerprint/fingerprint.ts',
} as const satisfies Programs
/** What an application brings itself. */
const external = [
  ...['pg', 'libsql', 'ioredis', 'hono', '@hono/node-server', 'express', 'fastify', 'koa'],
  ...['prom-client', '@opentelemetry/sdk-metrics'],
  ...['@nats-io/jetstream', '@nats-io/transport-node', 'amqplib', 'kafkajs'],
]

export async function bundlePrograms(): Promise<Programs> {
  const entries = Object.entries(sources)
  await build({
    entryPoints: Object.fromEntries(
      entries.map(([name, file]) => [name, fileURLToPath(new URL(file, import.meta.url))]),
    ),
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['latchkey-source'],
    external,
    logLevel: 'warning',
  })
  const at = (name: keyof Programs) => `${directory}/${name}.mjs`
  return {
    server: at('server'),
    load: at('load'),
    outbox: at('outbox'),
    consumers: at('consumers'),
    operators: at('operators'),
    publishers: at('publishers'),
    fingerprint: at('fingerprint'),
    fingerprintCode: at('fingerprintCode'),
  }
}
