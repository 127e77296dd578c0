/** Known bugs in the cache in front of a store. */
import type { Mutant, NamedTest } from './mutant.ts'

const folder = 'packages/latchkey/src/stores/tiered'
const withdraw = `${folder}/cache/withdraw.ts`
const keeps = (test: string): NamedTest => ({ path: `${folder}/store.redis.test.ts`, test })
const survives = (test: string): NamedTest => ({ path: `${folder}/outages.redis.test.ts`, test })
const counts = (test: string): NamedTest => ({ path: `${folder}/store.pg.test.ts`, test })

export const tieredMutants: readonly Mutant[] = [
  {
    name: 'tiered: the cache is filled without the ticket',
    patches: [
      { file: `${folder}/cache/scripts.ts`, find: '~= ticket then return 0 end', replace: "== 'no' then return 0 end" },
    ],
    caughtBy: [
      keeps('stores no answer that was read before a forget'),
      keeps('stores no answer whose ticket was lost by FLUSHALL'),
    ],
  },
  {
    name: 'tiered: a forget without a tombstone before it',
    patches: [
      { file: withdraw, find: 'await bury(id, tombstone)\n', replace: '' },
      { file: withdraw, find: '!(await bury(id, tombstone));', replace: 'tries > 1;' },
    ],
    caughtBy: [keeps('has no row in the cache while the store forgets it (flushed meanwhile: false)')],
  },
  {
    name: 'tiered: a tombstone that was lost is not noticed before the forget',
    patches: [{ file: withdraw, find: '!(await bury(id, tombstone));', replace: 'tries > 1;' }],
    caughtBy: [keeps('has no row in the cache while the store forgets it (flushed meanwhile: true)')],
  },
  {
    name: 'tiered: a tombstone that was lost is not noticed after the forget',
    patches: [{ file: withdraw, find: "answers'))) await periodsEnd()", replace: "answers'))) await 0" }],
    caughtBy: [keeps('waits for the memory of every process once more, where the cache lost the tombstone')],
  },
  {
    name: 'tiered: a forget that does not wait for the memory of other processes',
    patches: [
      {
        file: withdraw,
        find: 'await bury(id, tombstone)\n      await periodsEnd()\n',
        replace: 'await bury(id, tombstone)\n',
      },
    ],
    caughtBy: [keeps('forgets a row in the cache and in the memory of every process before it returns')],
  },
  {
    name: 'tiered: a forget although the cache did not answer',
    patches: [
      {
        file: `${folder}/cache/calls.ts`,
        find: "throw new LatchkeyError('cache-unavailable', message, { cause })",
        replace: 'return 1',
      },
    ],
    caughtBy: [survives('refuses to forget while it cannot take the row out, and leaves the row alone')],
  },
  {
    name: 'tiered: an entry lives as long as it likes',
    patches: [
      {
        file: `${folder}/cache/fill.ts`,
        find: 'leftMs - elapsedMs - marginMs, livesMsMax',
        replace: 'livesMsMax, livesMsMax',
      },
    ],
    caughtBy: [keeps('stores an answer for less time than the store keeps it, and ten minutes at most')],
  },
  {
    name: 'tiered: the time of an entry is not compared',
    patches: [{ file: `${folder}/cache/entry.ts`, find: ' || passedMs < 0', replace: '' }],
    caughtBy: [keeps('does not use an entry that has more time left than it was given')],
  },
  {
    name: 'tiered: the bytes of an entry are not compared',
    patches: [
      {
        file: `${folder}/cache/entry.ts`,
        find: 'if (!checksum(id, content).equals(bytes.subarray(checksumAt, lengthAt))) return undefined',
        replace: '',
      },
    ],
    caughtBy: [keeps('asks the store where the entry of another row was copied to this one, or a byte is wrong')],
  },
  {
    name: "tiered: a hit has the request's fingerprint",
    patches: [
      {
        file: `${folder}/store.ts`,
        find: 'claim: request => through(request.identity, () => store.claim(request)),',
        replace: `async claim(request) {
      const found = await through(request.identity, () => store.claim(request))
      return found.kind === 'won' ? found : { ...found, record: { ...found.record, fingerprint: request.fingerprint } }
    },`,
      },
    ],
    caughtBy: [
      keeps('answers with the fingerprint of the row, so that another request is found out'),
      counts('replays a guarded operation without a statement, and refuses another input under its key without one'),
    ],
  },
  {
    name: 'tiered: a held row is stored without being asked for',
    patches: [
      {
        file: `${folder}/cache/fill.ts`,
        find: 'Math.min(record.leaseLeftMs - elapsedMs, heldMs)',
        replace: 'record.leaseLeftMs',
      },
    ],
    caughtBy: [keeps('stores no row that is not completed')],
  },
  {
    name: 'tiered: a held row outlives its lease',
    patches: [
      { file: `${folder}/cache/fill.ts`, find: 'Math.min(record.leaseLeftMs - elapsedMs, heldMs)', replace: 'heldMs' },
    ],
    caughtBy: [keeps('are never held longer than their lease')],
  },
  {
    name: 'tiered: a miss grants',
    patches: [
      {
        file: `${folder}/read-through.ts`,
        find: '    const result = await ask()\n',
        replace: `    if (found.isSure && id !== '')
      return { kind: 'won', claim: { id, fence: 1, claimId: id }, attempt: 1, crashes: 0, from: 'none' } as unknown as R
    const result = await ask()\n`,
      },
    ],
    caughtBy: [keeps('grants through the store only, and gives the row to one of many')],
  },
  {
    name: 'tiered: what a transaction of the caller sees is stored',
    patches: [
      {
        file: `${folder}/transactor.ts`,
        find: '      const ticket = isObject(tx) ? tickets.get(tx) : undefined\n',
        replace: `      const found = await tier.lookUp(request.identity.id)
      const ticket = found.kind === 'miss' ? found.ticket : undefined\n`,
      },
    ],
    caughtBy: [counts('stores nothing that a transaction of the caller has seen, which may be older than the ticket')],
  },
  {
    name: 'tiered: an erased tenant is stored again',
    patches: [{ file: `${folder}/cache/fill.ts`, find: '!== null) return', replace: '=== undefined) return' }],
    caughtBy: [keeps('stores nothing of a tenant that was erased, and uses nothing of it')],
  },
  {
    name: 'tiered: a tenant stays in the cache when it is erased',
    patches: [{ file: `${folder}/store.ts`, find: 'await tier.exclude(scope)', replace: '' }],
    caughtBy: [counts('has nothing of a tenant any more when it is erased')],
  },
  {
    name: 'tiered: a value stays in the cache when it is replaced',
    patches: [{ file: `${folder}/store.ts`, find: 'if (id !== undefined) await tier.bury(id)', replace: '' }],
    caughtBy: [counts('has nothing in the cache under a key that was thrown away after rewrap')],
  },
  {
    name: 'tiered: a process remembers for ever',
    patches: [
      {
        file: `${folder}/cache/periods.ts`,
        find: 'clock.monotonicMs() < period.endsAtMs',
        replace: 'period.endsAtMs > 0',
      },
    ],
    caughtBy: [keeps('answers from the memory of the process until the period ends')],
  },
  {
    name: 'tiered: a request waits for another one for as long as that waits',
    patches: [
      {
        file: `${folder}/read-through.ts`,
        find: 'stopTimer ??= clock.after(leftMs, () => arrive(undefined))',
        replace: '',
      },
    ],
    caughtBy: [keeps('lets nobody wait for a request that the store lets wait')],
  },
  {
    name: 'tiered: a cache that hangs is asked each time',
    patches: [
      { file: `${folder}/cache/calls.ts`, find: 'if (inRow < failuresMax) return true', replace: 'return true' },
    ],
    caughtBy: [survives('costs a request 50 ms when it hangs, then none at all, and is used again when it is back')],
  },
]
