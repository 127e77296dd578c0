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
    patches: [{ file: `${folder}/keys/complete.ts`, find: ' or fence ~= ownFence', replace: '' }],
    caughtBy: [conforms('refuses every write with the wrong fence to a row that is in_progress')],
  },
  {
    name: 'redis: complete without the claim id',
    patches: [{ file: `${folder}/keys/complete.ts`, find: ' or claim ~= ownClaim', replace: '' }],
    caughtBy: [conforms('refuses every write with the wrong claimId to a row that is in_progress')],
  },
  {
    name: 'redis: an owner without the fence',
    patches: [{ file: `${folder}/keys/owner.ts`, find: 'fence == tonumber(ownFence) and ', replace: '' }],
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
        find: 'and call == ownCall then',
        replace: 'and false then',
      },
    ],
    caughtBy: [survives('is granted a claim once whose reply was lost')],
  },
  {
    name: 'redis: an expiry is not compared',
    patches: [{ file: `${folder}/keys/row.ts`, find: 'and expires <= now', replace: 'and false' }],
    caughtBy: [conforms('grants over an expired row as over none, with the next fence')],
  },
  {
    name: 'redis: a fence that is a counter',
    patches: [
      {
        file: `${folder}/keys/claim.ts`,
        find: 'local seed = time[1] * 1000000 + time[2]',
        replace: 'local seed = 1',
      },
    ],
    caughtBy: [keeps('raises the fence of an identity over the loss of everything')],
  },
  {
    name: 'redis: a fence below the highest of its bucket',
    patches: [{ file: `${folder}/keys/claim.ts`, find: 'tonumber(highest) >= seed', replace: 'false' }],
    caughtBy: [keeps('raises the fence while the clock of the server stands behind what was granted')],
  },
  {
    name: 'redis: one bad row fails the calls of its turn',
    patches: [
      {
        file: `${folder}/connection/script.ts`,
        find: 'local isDecided, reply = pcall(decide, ',
        replace: 'local isDecided, reply = true, decide(',
      },
    ],
    caughtBy: [keeps('decides the other calls of a turn where one key holds something else')],
  },
  {
    name: 'redis: calls of a turn are not parted where a server asks for it',
    patches: [
      { file: `${folder}/connection/together.ts`, find: '!byBucket && isCrossSlot', replace: 'false && isCrossSlot' },
    ],
    caughtBy: [
      {
        path: `${folder}/cluster.redis.test.ts`,
        test: 'parts the calls of a turn by their buckets where the client of one server reaches a cluster',
      },
    ],
  },
  {
    name: 'redis: a grant without a replica, among calls of one turn',
    patches: [
      {
        file: `${folder}/keys/claim.ts`,
        find: 'if (lack !== undefined) return unanswered',
        replace: 'if (false) return unanswered',
      },
    ],
    caughtBy: [replicates('grants no claim that the replica does not have, and leaves the key free')],
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
      {
        file: `${folder}/connection/link.ts`,
        find: 'if (!isNoScript(error)) throw storeError(',
        replace: 'throw storeError(',
      },
    ],
    caughtBy: [keeps('loads its scripts again where the server has forgotten them')],
  },
  {
    name: 'redis: a refusal of what was sent twice is believed',
    patches: [
      {
        file: `${folder}/connection/errors.ts`,
        find: 'sent: wasRefused(error) && !wasResent ? false : undefined',
        replace: 'sent: wasRefused(error) ? false : undefined',
      },
    ],
    caughtBy: [survives('does not call a claim refused that was granted before its connection broke')],
  },
  {
    name: 'redis: the evidence of a forgotten row stays for ever',
    patches: [
      { file: `${folder}/keys/operator.ts`, find: "redis.call('PEXPIRE', evidence, ${orphanMs})\n", replace: '' },
    ],
    caughtBy: [keeps('leaves nothing for ever of a row that was forgotten or evicted')],
  },
  {
    name: 'redis: a row of a later version is no longer due',
    patches: [
      {
        file: `${folder}/keys/sweep.ts`,
        find: 'if state and state > ${unknown} then return false end\n',
        replace: '',
      },
    ],
    caughtBy: [keeps('leaves a row of a later format due for those who can read it')],
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
