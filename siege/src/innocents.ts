/**
 * Tenants that do nothing wrong: ordinary requests of every kind, with the retries of a careful client. Started by fork; runs until it
 * gets a message to finish, and then reports what it lost.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { randomFrom } from '../../torture/src/random.ts'
import { ask, type Ask, type Heard } from './ask.ts'
import type { Innocents } from './evidence.ts'
import { carried, type Route, type StoreKind } from './app/operations.ts'

export interface InnocentsArgument {
  readonly url: string
  readonly store: StoreKind
  readonly seed: number
}

const { url, store, seed }: InnocentsArgument = JSON.parse(process.argv[2] ?? '{}')
/** Enough for some of them to be in every batch, and too few to cause load. */
const clients = 32
const tenants = 4
const restMs = 100
const kinds: readonly Route[] = carried(store, ['transfers', 'hits', 'atomic', 'phased', 'deferred'])

let finishing = false
let requests = 0
const acknowledged: string[] = []
const losses: Record<string, number> = {}
const lose = (what: string) => (losses[what] = (losses[what] ?? 0) + 1)

process.on('disconnect', () => process.exit(1))
process.once('message', () => (finishing = true))
await Promise.all(Array.from({ length: clients }, (_, index) => live(index)))
const result: Innocents = { requests, acknowledged, losses }
process.send?.(result, () => process.exit(0))

async function live(index: number): Promise<void> {
  const random = randomFrom(seed, `innocent-${index}`)
  const account = `innocent-${index % tenants}`
  for (let turn = 0; !finishing; turn += 1) {
    const route = random.pick(kinds)
    const request = { url, route, account, key: `i-${index}-${turn}` }
    const asked = random.chance(0.3) ? [ask(request), ask(request)] : [ask(request)]
    const heard = await Promise.all(asked)
    if (random.chance(0.5)) heard.push(await ask(request))
    judge(request, heard)
    await delay(restMs)
  }
}

/** All answers for one key must be equal, and the tenant's own. */
function judge({ route, account }: Ask, heard: readonly Heard[]): void {
  for (const each of heard) {
    requests += each.requests
    if (each.kind === 'lost') lose(each.what)
  }
  const dones = heard.flatMap(each => (each.kind === 'done' ? [each.done] : []))
  const [first] = dones
  if (first === undefined) return
  acknowledged.push(first.id)
  if (first.account !== account) lose(`${route} got the answer of ${first.account}`)
  if (dones.some(({ nonce }) => nonce !== first.nonce)) lose(`${route} got two answers for one key`)
}
