/**
 * The provider reports what it did, in signed messages: soon, late, in any order, and again until they are accepted. Attackers send
 * what they recorded, and what they made up.
 */
import { createHmac } from 'node:crypto'
import type { History } from './history.ts'
import type { Entry } from './provider.ts'
import type { World } from './world.ts'

const secretBytes = Buffer.from('a secret of the simulated provider')
export const secret: string = `whsec_${secretBytes.toString('base64')}`
const stolen = Buffer.from('not the secret, but as long as it.')

/** The body of a message. */
export interface MessageBody extends Pick<Entry, 'id' | 'key' | 'intended'> {
  readonly kind: Entry['kind'] | 'never-happened'
  readonly result: string
}

export interface Message {
  readonly id: string
  readonly timestamp: string
  readonly signature: string
  readonly body: Uint8Array
}

/** `gone`: no answer came. */
export type Deliver = (message: Message, answered: (status: number | 'gone') => void) => void

export interface Sender {
  announce(entry: Entry): void
  connect(deliver: Deliver): void
  idle(): boolean
}

/** The provider tries for this long, which is shorter than a row of guarded work is kept. */
const triesForMs = 30_000
const answerWithinMs = 10_000

export function webhookSender(world: World, history: History): Sender {
  const { chance } = world
  const taken = new Map<string, number>()
  let deliver: Deliver = (_, answered) => answered('gone')
  let announced = 0
  let open = 0

  function later(delayMs: number, run: () => void): void {
    open += 1
    world.at(delayMs, () => {
      open -= 1
      run()
    })
  }

  const sign = (id: string, body: MessageBody, key = secretBytes) => signed({ id, body, key, nowMs: world.nowMs() })

  /** Reports how it ended, at most once, and in time. */
  function hand(message: Message, answered: (status: number | 'gone') => void): void {
    let over = false
    const once = (status: number | 'gone') => {
      if (over) return
      over = true
      if (status === 200 && count(taken, message.signature) > 1) history.break(`I18 taken twice: message ${message.id}`)
      answered(status)
    }
    deliver(message, once)
    later(answerWithinMs, () => once('gone'))
  }

  function send(id: string, entry: Entry): void {
    const message = sign(id, entry)
    world.trace(() => `provider sends message ${id}: ${entry.effect} ${entry.key.slice(0, 4)} is ${entry.result}`)
    hand(message, status => {
      if (status === 200) return history.saw('a webhook was taken')
      if (world.nowMs() > entry.atMs + triesForMs) return history.saw('a webhook was given up')
      later(chance.between(1_000, 8_000), () => send(id, entry))
    })
    if (chance.happens(0.3)) later(chance.between(1, 9_000), () => replay(message))
    if (chance.happens(0.3)) later(chance.between(1, 9_000), () => forge(message, entry))
  }

  function replay(message: Message): void {
    hand(message, status => history.saw(`a recorded webhook got ${status}`))
  }

  function forge(message: Message, entry: Entry): void {
    const lie = chance.happens(0.5) ? denied(entry) : invented(entry)
    const id = `forged-${message.id}`
    const forged = chance.pick([sign(id, lie, stolen), { ...message, body: Buffer.from(JSON.stringify(lie)) }])
    hand(forged, status => {
      if (status === 200) history.break(`I18 a forged message is taken: ${forged.id}`)
      history.saw(`a forged webhook got ${status}`)
    })
  }

  return {
    idle: () => open === 0,
    connect(to) {
      deliver = to
    },
    announce(entry) {
      // Some are never sent.
      if (chance.happens(0.2)) return
      const id = `msg-${(announced += 1)}`
      const delayMs = chance.pick([chance.between(1, 50), chance.between(50, 4_000), chance.between(1_000, 25_000)])
      later(delayMs, () => send(id, entry))
    },
  }
}

function count(counts: Map<string, number>, key: string): number {
  const total = (counts.get(key) ?? 0) + 1
  counts.set(key, total)
  return total
}

interface Signing {
  readonly id: string
  readonly body: MessageBody
  readonly key: Buffer
  readonly nowMs: number
}

function signed({ id, body, key, nowMs }: Signing): Message {
  const timestamp = String(Math.floor((1_800_000_000_000 + nowMs) / 1_000))
  const bytes = Buffer.from(JSON.stringify(body))
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest('base64')
  return { id, timestamp, body: bytes, signature: `v1,${digest}` }
}

function denied(entry: Entry): MessageBody {
  return { ...entry, kind: 'never-happened' }
}

function invented(entry: Entry): MessageBody {
  return { ...entry, kind: 'happened', result: `${entry.effect} that never was` }
}
