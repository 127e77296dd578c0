// npm test [-- arguments of vitest]     all tests
// npm run test:fast                     the tests that need no server
// npm test -- --proof                   the tests that take too long for npm test; a part of npm run proof
//
// The name of a test file says what it needs:
//   x.test.ts          nothing but this machine: memory, SQLite, adapters in process. Seconds in all; this is --fast.
//   x.pg.test.ts       PostgreSQL. One server is started for the run (and installed, where we may), a database per suite.
//   x.redis.test.ts    Redis. Each suite starts its own server, which takes no time (installed, where we may).
//   x.nats.test.ts     NATS with JetStream, as with Redis.
//   x.kafka.test.ts    Kafka: the cluster in memory that kcat contains, as with Redis.
//   x.browser.test.ts  Chromium, as with Redis.
//   x.rabbitmq.test.ts RabbitMQ. One server is started for the run (and installed, where we may), because it takes ten seconds.
//   x.system.test.ts   several processes, crashes, long races; may use PostgreSQL.
//   x.proof.….test.ts  one of the above that takes long, such as a whole crash matrix. Only --proof runs it.
// Suites reach the servers through test/servers/describe-postgres.ts and test/servers/<server>/describe-<server>.ts. Where there is none they are skipped and
// listed at the end; with CI=true that is a failure instead.
//
// Our own options: --fast, --proof, --time-limit-minutes=20. Everything else goes to vitest, including names of files and folders.
// The last line is `N passed, M failed`, and the exit code is 0 only if something passed and nothing failed.
import { superviseVitest } from './test/supervise.ts'
import { summarise } from './test/summary.ts'
import { MAY_INSTALL, PROOF_FILES, SERVER_FILES } from '../test/servers/shared-server.ts'

const TIME_LIMIT_MINUTES = 20
const TIME_LIMIT_FLAG = '--time-limit-minutes='

const given = process.argv.slice(2)
const limitMinutes = Number(
  given.find(arg => arg.startsWith(TIME_LIMIT_FLAG))?.slice(TIME_LIMIT_FLAG.length) ?? TIME_LIMIT_MINUTES,
)
if (!(limitMinutes > 0)) throw new Error(`${TIME_LIMIT_FLAG} must be a positive number of minutes`)

const forVitest = given.filter(arg => arg !== '--fast' && arg !== '--proof' && !arg.startsWith(TIME_LIMIT_FLAG))
if (!given.includes('--proof')) forVitest.push(`--exclude=${PROOF_FILES}`)
else if (forVitest.every(arg => arg.startsWith('--'))) forVitest.push('.proof.')
if (given.includes('--fast')) forVitest.push(...SERVER_FILES.map(pattern => `--exclude=${pattern}`))

process.env[MAY_INSTALL] ??= '1'
const summary = summarise(await superviseVitest(forVitest, limitMinutes * 60_000))
console.log(summary.lines.join('\n'))
process.exitCode = summary.exitCode
