/** Known bugs in what Latchkey tells about itself. */
import type { Mutant, NamedTest } from './mutant.ts'

const library = 'packages/latchkey/src'
const metrics = (test: string): NamedTest => ({ path: 'packages/latchkey/test/engine/metrics.test.ts', test })
const onPrometheus = (test: string): NamedTest => ({ path: `${library}/telemetry/prometheus/index.test.ts`, test })
const onOtel = (test: string): NamedTest => ({ path: `${library}/telemetry/otel/index.test.ts`, test })
const ofSqlite = (test: string): NamedTest => ({ path: 'packages/latchkey/test/telemetry/contention.test.ts', test })
const inStory = (test: string): NamedTest => ({ path: 'packages/latchkey/test/telemetry/story.pg.test.ts', test })

export const telemetryMutants: readonly Mutant[] = [
  {
    name: 'telemetry: a duplicate without its scope',
    patches: [
      {
        file: `${library}/engine/run/answer-from-row.ts`,
        find: `core.telemetry.count('reserve.in_progress', { operation, scope })`,
        replace: `core.telemetry.count('reserve.in_progress', scope === '' ? {} : { operation })`,
      },
    ],
    caughtBy: [metrics('is counted with its scope'), inStory('name the tenant that repeats itself')],
  },
  {
    name: 'telemetry: a tracer that calls twice runs the handler twice',
    patches: [
      {
        file: `${library}/engine/run/trace.ts`,
        find: 'const begin = () => (begun ??= promised(run))',
        replace: 'const begin = () => (begun = promised(run))',
      },
    ],
    caughtBy: [onOtel('change no outcome where the tracer calls the work twice')],
  },
  {
    name: 'telemetry: a bucket without its upper limit',
    patches: [
      {
        file: `${library}/telemetry/prometheus/metric.ts`,
        find: 'value > (buckets[at] ?? Infinity)',
        replace: 'value >= (buckets[at] ?? Infinity)',
      },
    ],
    caughtBy: [onPrometheus('shows a duration in seconds, in cumulative buckets')],
  },
  {
    name: 'telemetry: the list of scopes grows',
    patches: [
      {
        file: `${library}/telemetry/top-scopes.ts`,
        find: 'if (least !== undefined) counted.delete(least.scope)',
        replace: 'void least',
      },
    ],
    caughtBy: [onPrometheus('shows the scopes with the most duplicates, at most 100')],
  },
  {
    name: 'telemetry: a lease warning for every slow execution',
    patches: [
      {
        file: `${library}/engine/run/lease-warnings.ts`,
        find: 'warnedAtMs.set(operation, nowMs)',
        replace: 'void nowMs',
      },
    ],
    caughtBy: [metrics('is reported once a minute where one in a hundred')],
  },
  {
    name: 'telemetry: a group commit that is not told',
    patches: [
      {
        file: `${library}/stores/sqlite/connection/group-commit.ts`,
        find: 'parts.observed?.observer?.batch(tried.members.length',
        replace: 'parts.observed?.observer?.batch(1',
      },
    ],
    caughtBy: [ofSqlite('is each group commit once')],
  },
]
