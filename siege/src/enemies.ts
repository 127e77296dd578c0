/** The enemies, in their own process, so that nothing else waits for them. Started by fork; reports at the end what answers each got. */
import { setMaxListeners } from 'node:events'
import { randomFrom } from '../../torture/src/random.ts'
import { attacks } from './enemies/all.ts'
import type { EnemyName } from './enemies/names.ts'
import type { Attacks } from './evidence.ts'
import type { StoreKind } from './app/operations.ts'

export interface EnemiesArgument {
  readonly url: string
  readonly http2Url: string
  readonly store: StoreKind
  /** Of the server that holds the keys. */
  readonly keysUrl: string
  readonly seconds: number
  readonly seed: number
  readonly names: readonly EnemyName[]
}

/** Two attacks at a time: they meet in every combination, and the machine still has room for the innocents. */
const lanes = 2
/** Ten times what the longest attack takes on an idle machine. One that was cut short gets twice as long the next time. */
const attackMsMax = 60_000
/** An enemy that has not completed any of so many attacks is given up: the run proves nothing about it. */
const triesMax = 3

const argument: EnemiesArgument = JSON.parse(process.argv[2] ?? '{}')
const { names, seed, seconds } = argument
const random = randomFrom(seed, 'enemies')
const seen: Partial<
  Record<EnemyName, { attacks: number; whole: number; heard: Record<string, number>; untrue: string[] }>
> = {}
for (const name of names) seen[name] = { attacks: 0, whole: 0, heard: {}, untrue: [] }

process.on('disconnect', () => process.exit(1))
const endMs = performance.now() + seconds * 1_000
const attacking = new Set<EnemyName>()
let waiting: EnemyName[] = []
await Promise.all(Array.from({ length: Math.min(lanes, names.length) }, attackInTurn))
const result: Partial<Record<EnemyName, Attacks>> = seen
process.send?.(result, () => process.exit(0))

/** Until the time is over, and on a slow machine until each enemy has completed an attack. */
async function attackInTurn(): Promise<void> {
  while (performance.now() < endMs) await attack(nextName())
  for (let name = names.find(isWanted); name !== undefined; name = names.find(isWanted)) await attack(name)
}

function isWanted(name: EnemyName): boolean {
  const { attacks: tries = 0, whole = 0 } = seen[name] ?? {}
  return whole === 0 && tries < triesMax && !attacking.has(name)
}

/** Each enemy once, in random order, then again. */
function nextName(): EnemyName {
  if (waiting.length === 0) waiting = [...names]
  const [name = names[0]] = waiting.splice(random.between(0, waiting.length - 1), 1)
  if (name === undefined) throw new Error('there is no enemy')
  return name
}

async function attack(name: EnemyName): Promise<void> {
  const record = seen[name]
  if (record === undefined) return
  const cutShort = record.attacks - record.whole - (attacking.has(name) ? 1 : 0)
  record.attacks += 1
  attacking.add(name)
  const signal = AbortSignal.timeout(attackMsMax * 2 ** Math.min(cutShort, triesMax))
  // Every request listens to it.
  setMaxListeners(0, signal)
  const { url, http2Url, store, keysUrl } = argument
  await attacks[name]({
    url,
    http2Url,
    store,
    keysUrl,
    name: `enemy-${name}`,
    random: randomFrom(seed, `${name}-${record.attacks}`),
    signal,
    heard: what => (record.heard[what] = (record.heard[what] ?? 0) + 1),
    untrue: detail => void record.untrue.push(detail),
  })
  if (!signal.aborted) record.whole += 1
  attacking.delete(name)
}
