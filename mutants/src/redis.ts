/** Known bugs in the scripts for Redis, and in how they are sent. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/redis'
const conforms = (test: string): NamedTest => ({ path: `${folder}/conformance.redis.test.ts`, test })
const keeps = (test: string): NamedTest => ({ path: `${folder}/store.redis.test.ts`, test })
const survives = (test: string): NamedTest => ({ path: `${folder}/outages.redis.test.ts`, test })
const replicates = (test: string): NamedTest => ({ path: `${folder}/replicas.redis.test.ts`, test })

export const redisMutants: readonly Mutant[] = [
  {
    name: 'redis: complete without the fence',
    patches: [{ file: `${folder}/keys/complete.ts`, find: ' or found[2] ~= ownFence', replace: '' }],
    caughtBy: [conforms('refuses every write with the wrong fence to a row that is in_progress')],
  },
  {
    name: 'redis: complete without the claim id',
    patches: [{ file: `${folder}/keys/complete.ts`, find: ' or found[3] ~= ownClaim', replace: '' }],
    caughtBy: [conforms('refuses every write with the wrong claimId to a row that is in_progress')],
  },
  {
    name: 'redis: an owner without the fence',
    patches: [{ file: `${folder}/keys/owner.ts`, find: 'fence == ownFence and ', replace: '' }],
    caughtBy: [conforms('refuses every write with the wrong fence to a row that is unknown')],
  },
  {
    name: 'redis: the clock of the process',
    patches: [
      {
        file: `${folder}/connection/script.ts`,
        find: '`local now = time[1] * 1000 + math.floor(time[2] / 1000)',
        replace: '`local now = ${Date.now()}',
      },
    ],
    caughtBy: [keeps('decides leases by the clock of the server')],
  },
  {
    name: 'redis: a claim that was sent twice is refused',
    patches: [
      {
        file: `${folder}/keys/claim.ts`,
        find: "and redis.call('HGET', row, 'ca') == call then",
        replace: 'and false then',
      },
    ],
    caughtBy: [survives('is granted a claim once whose reply was lost')],
  },
  {
    name: 'redis: an expiry is not compared',
    patches: [{ file: `${folder}/keys/row.ts`, find: 'and tonumber(expires) <= now', replace: 'and false' }],
    caughtBy: [conforms('grants over an expired row as over none, with the next fence')],
  },
  {
    name: 'redis: a fence that is a counter',
    patches: [
      {
        file: `${folder}/keys/claim.ts`,
        find: 'math.max(highest + 1, time[1] * 1000000 + time[2])',
        replace: 'highest + 1',
      },
    ],
    caughtBy: [keeps('raises the fence of an identity over the loss of everything')],
  },
  {
    name: 'redis: the eviction policy is not checked',
    patches: [{ file: `${folder}/connection/fitness.ts`, find: "policy === 'noeviction' || ", replace: 'true || ' }],
    caughtBy: [
      {
        path: `${folder}/connection/fitness.redis.test.ts`,
        test: 'refuses a server that may evict keys, names the setting, and takes it when told to',
      },
    ],
  },
  {
    name: 'redis: an answer needs memory',
    patches: [
      {
        file: `${folder}/keys/complete.ts`,
        find: "  flags: 'allow-oom',\n  isReplicated: true,",
        replace: "  flags: '',\n  isReplicated: true,",
      },
    ],
    caughtBy: [survives('grants nothing new while its server is full, and still answers, records and replays')],
  },
  {
    name: 'redis: scripts that the server forgot are not sent again',
    patches: [
      { file: `${folder}/connection/link.ts`, find: 'if (!isNoScript(error)) throw error', replace: 'throw error' },
    ],
    caughtBy: [keeps('loads its scripts again where the server has forgotten them')],
  },
  {
    name: 'redis: WAIT on another socket',
    patches: [
      {
        file: `${folder}/connection/replicas.ts`,
        find: '  let connection = 0',
        replace: `  const other = (client as any).duplicate()
  other.on('error', () => {})
  const isOpen = other.connect()
  let connection = 0`,
      },
      {
        file: `${folder}/connection/replicas.ts`,
        find: 'await client.wait?.(wait, timeoutMs)',
        replace: 'await isOpen.then(() => other.wait(wait, timeoutMs))',
      },
    ],
    caughtBy: [replicates('grants no claim that the replica does not have, and leaves the key free')],
  },
  {
    name: 'redis: WAIT after a reconnect counts',
    patches: [
      { file: `${folder}/connection/replicas.ts`, find: 'sentOn === connection ? ', replace: 'sentOn >= 0 ? ' },
    ],
    caughtBy: [replicates('does not count replicas that were asked for on a new connection')],
  },
  {
    name: 'redis: a claim short of replicas stays',
    patches: [
      {
        file: `${folder}/keys/claim.ts`,
        find: "  await release(link, identity.id, claimId).catch(() => 'not-yours')\n",
        replace: '',
      },
    ],
    caughtBy: [replicates('grants no claim that the replica does not have, and leaves the key free')],
  },
]
