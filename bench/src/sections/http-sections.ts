/** The sections that put load on servers: each a scenario, and the figures that come out of it. */
import { faultsOf, scenarioTable, settingsOf } from '../report/table.ts'
import { measureScenario, type Scenario, type ScenarioResult } from '../scenario.ts'
import type { Section } from '../section.ts'
import { frameNames } from '../subjects.ts'
import { type Comparison, comparisons } from './compare.ts'
import { type LongRun, longRunFigures, longRunTable, measureLongRun } from './long-run.ts'

const redisPeers = ['powertools-redis', 'node-idempotency-redis', 'steadykey-redis'] as const
const peersOnPlain = [...redisPeers, 'steadykey-postgres'] as const

interface HttpSection extends Scenario {
  readonly title: string
  readonly what: string
  readonly figures: Readonly<Record<string, Comparison>>
  /** Measured after the repetitions. */
  readonly long?: LongRun
  readonly remark?: string
}

const saturation: HttpSection = {
  name: 'saturation',
  title: 'Saturation: no work, 64 connections, new keys',
  what: 'no work, 64 connections, every key new: Latchkey, the naive guard and the peers over the bare server',
  subjects: [
    'bare',
    'postgres',
    'floor',
    'naive',
    'sqlite',
    'memory',
    ...peersOnPlain,
    'express',
    'express-postgres',
    'express-idempotency',
  ],
  connections: [64],
  seconds: 1.2,
  starts: 2,
  remark: 'Subjects on Express are compared with bare Express, all others with bare node:http.',
  figures: {
    'postgres over bare': {
      of: 'postgres',
      over: 'bare',
      what: 'throughput of durable PostgreSQL over the bare server',
    },
    'floor over bare': {
      of: 'floor',
      over: 'bare',
      what: 'throughput of the leanest durable guard over the bare server',
    },
    'postgres over floor': { of: 'postgres', over: 'floor', what: 'throughput over the leanest durable guard' },
    'postgres over naive': { of: 'postgres', over: 'naive', what: 'throughput over a pool with INSERT and UPDATE' },
    ...Object.fromEntries(
      peersOnPlain.map(peer => [
        `postgres over ${peer}`,
        { of: 'postgres', over: peer, what: `throughput over ${peer}` },
      ]),
    ),
    'express-postgres over express-idempotency': {
      of: 'express-postgres',
      over: 'express-idempotency',
      what: 'throughput over express-idempotency in memory, both on Express',
    },
    'cpu over naive': {
      of: 'postgres',
      over: 'naive',
      by: run => run.appUs + run.databaseUs,
      what: 'processor time per request of application and database over naive',
    },
    'app over bare': {
      of: 'postgres',
      over: 'bare',
      by: run => run.appUs,
      combine: (a, b) => a - b,
      unit: 'µs',
      what: 'processor time per request that PostgreSQL adds to the application',
    },
    'sqlite over bare': { of: 'sqlite', over: 'bare', what: 'throughput of durable SQLite over the bare server' },
    'memory over bare': { of: 'memory', over: 'bare', what: 'throughput in memory over the bare server' },
  },
}

const work: HttpSection = {
  name: 'work',
  title: 'Work: 50 ms in the handler, 50 connections, new keys',
  what: '50 ms of work in every handler, 50 connections',
  subjects: ['bare', 'postgres', 'sqlite', 'naive', 'node-idempotency-redis'],
  connections: [50],
  seconds: 2,
  starts: 2,
  workMs: 50,
  long: { subjects: ['bare', 'postgres'], seconds: 60 },
  figures: {
    'postgres over bare': { of: 'postgres', over: 'bare', what: 'throughput over the bare server' },
    'p99 added': {
      of: 'postgres',
      over: 'bare',
      by: run => run.p99Ms,
      combine: (a, b) => a - b,
      unit: 'ms',
      what: 'what PostgreSQL adds to the 99th percentile of the bare server',
    },
  },
}

const replay: HttpSection = {
  name: 'replay',
  title: 'Replays: no work, 64 connections, every key completed before',
  what: 'every request is a replay of one of 1,000 completed keys, 64 connections',
  subjects: [
    'bare',
    'postgres',
    'floor',
    'naive',
    'sqlite',
    'memory',
    'powertools-redis',
    'node-idempotency-redis',
    'steadykey-postgres',
  ],
  connections: [64],
  seconds: 1,
  starts: 2,
  replayedKeys: 1_000,
  figures: {
    'postgres over bare': { of: 'postgres', over: 'bare', what: 'throughput of replays over the bare server' },
    'sqlite over bare': { of: 'sqlite', over: 'bare', what: 'throughput of replays from SQLite over the bare server' },
  },
}

const atomic: HttpSection = {
  name: 'atomic',
  title: 'Atomic: the handler is one business transaction, 64 connections, new keys',
  what: 'begin, one insert, commit: with the key in the same transaction, and without Latchkey',
  subjects: ['own-postgres', 'atomic-postgres', 'own-sqlite', 'atomic-sqlite'],
  connections: [64],
  seconds: 1.5,
  starts: 2,
  figures: {
    'postgres over own transaction': {
      of: 'atomic-postgres',
      over: 'own-postgres',
      what: 'throughput of atomic mode over the same business transaction without Latchkey',
    },
    'sqlite over own transaction': {
      of: 'atomic-sqlite',
      over: 'own-sqlite',
      what: 'throughput of atomic mode on SQLite over the same transaction without Latchkey',
    },
  },
}

const single: HttpSection = {
  name: 'single',
  title: 'One client alone: no work, one connection, new keys',
  what: 'latency and throughput of one client alone',
  subjects: ['bare', 'postgres', 'naive'],
  connections: [1],
  seconds: 1,
  starts: 2,
  figures: {
    'throughput over naive': { of: 'postgres', over: 'naive', what: 'throughput over naive' },
    'latency over naive': { of: 'postgres', over: 'naive', by: run => run.p50Ms, what: 'median latency over naive' },
  },
}

const adapters: HttpSection = {
  name: 'adapters',
  title: 'Adapters: no work, 64 connections, new keys',
  what: 'each framework with Latchkey on PostgreSQL over the same framework without',
  subjects: frameNames.flatMap(frame => [frame, `${frame}-postgres`]),
  connections: [64],
  seconds: 0.5,
  starts: 2,
  remark: 'Each is compared with the same framework without Latchkey. Nest runs on the Express or the Fastify adapter.',
  figures: Object.fromEntries(
    frameNames.map(frame => [
      `${frame} over bare ${frame}`,
      { of: `${frame}-postgres`, over: frame, what: `throughput over bare ${frame}` },
    ]),
  ),
}

const options = {
  prometheus: { of: 'postgres-prometheus', what: 'metrics on a registry of prom-client' },
  otel: { of: 'postgres-otel', what: 'metrics through the SDK of OpenTelemetry' },
  encryption: { of: 'postgres-encrypted', what: 'encryption' },
}

const overhead: HttpSection = {
  name: 'overhead',
  title: 'Overhead of options: no work, 64 connections, new keys',
  what: 'telemetry and encryption, each over Latchkey on PostgreSQL without it',
  subjects: ['postgres', ...Object.values(options).map(({ of }) => of)],
  connections: [64],
  seconds: 0.7,
  rounds: 3,
  starts: 2,
  remark: 'Each is compared with Latchkey on PostgreSQL without the option.',
  figures: Object.fromEntries(
    Object.entries(options).flatMap(([name, { of, what }]): [string, Comparison][] => [
      [`${name} over without`, { of, over: 'postgres', what: `throughput with ${what} over without` }],
      [
        `${name}: app added`,
        {
          of,
          over: 'postgres',
          by: run => run.appUs,
          combine: (a, b) => a - b,
          unit: 'µs',
          what: `processor time per request that ${what} adds to the application`,
        },
      ],
    ]),
  ),
}

export const httpSections: readonly Section[] = [saturation, work, replay, atomic, single, adapters, overhead].map(
  asSection,
)

function asSection(section: HttpSection): Section {
  const { name, what } = section
  return {
    name,
    what,
    async run(context) {
      const result = await measureScenario(section, context)
      const long = section.long && (await measureLongRun(section, section.long, context))
      const all = long === undefined ? [result] : [result, long]
      return {
        markdown: markdownOf(section, result, long),
        figures: { ...comparisons(result, section.figures), ...(long && longRunFigures(long)) },
        faults: all.flatMap(faultsOf),
        settings: settingsOf(result),
        data: { ...result, long },
      }
    },
  }
}

function markdownOf({ title, remark }: HttpSection, result: ScenarioResult, long: ScenarioResult | undefined): string {
  return [
    `### ${title}`,
    scenarioTable(result),
    ...(remark === undefined ? [] : [remark]),
    ...(long === undefined ? [] : [longRunTable(long)]),
  ].join('\n\n')
}
