/** Appending to the outbox, from a phase or from any transaction of the store's database. */
import { createHash } from 'node:crypto'
import { checkOptions } from '../ports/check-options.ts'
import { type Clock, uuidText } from '../ports/clock.ts'
import { misconfigured } from '../ports/errors.ts'
import type { Store } from '../ports/store.ts'
import { lengthPrefixed, type Scope, scopeText } from './request.ts'
import { boundedJson } from './steps/json.ts'
import { messageChecks } from './option-checks.ts'
import { outboxMissing } from './store/carry.ts'

export interface OutboxMessage {
  /** Which target it goes to. */
  readonly topic: string
  /** Messages of one aggregate are delivered in order. Default: none, no order is promised. */
  readonly aggregate?: string
  /** Names the message for its consumer's inbox: the same key is the same message. Default: a random one. */
  readonly key?: string
  /** JSON, at most 64 KiB. */
  readonly payload: unknown
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The tenant it belongs to, as your scope function returns it: `erase` then finds it. Default: in a phase, the scope of its operation; in a
   * transaction of your own, none.
   */
  readonly scope?: Scope
}

/** `owner`: the scope of a message that names none, as it stands in rows. */
export type Append<Tx> = (tx: Tx, message: OutboxMessage, owner?: string) => Promise<void>

/** For transactions that the store itself handed out. */
export function appender<Tx>(store: Pick<Store<Tx>, 'name' | 'outbox'>, clock: Clock): Append<Tx> {
  const { outbox } = store
  return async (tx, message, owner) => {
    checkOptions('an outbox message', message, messageChecks)
    const { topic, aggregate, key, payload, headers = {} } = message
    if (outbox === undefined) throw outboxMissing(store, 'outbox.append')
    if (topic === undefined) throw misconfigured('an outbox message needs a topic: the name of its target')
    const text = boundedJson(`the payload of a message to ${topic}`, payload) ?? 'null'
    const dedupId = key === undefined ? clock.randomId() : dedupIdOf(topic, key)
    const scope = message.scope === undefined ? owner : scopeText(message.scope)
    await outbox.append(tx, { topic, aggregate, dedupId, payload: Buffer.from(text), headers, scope })
  }
}

/** For a caller's own transaction, which is proven to be one first. */
export function adoptingAppender<Tx>(store: Store<Tx>, append: Append<Tx>): Append<unknown> {
  return async (tx, message) => {
    if (store.transactor === undefined) throw outboxMissing(store, 'outbox.append')
    await append(await store.transactor.adopt(tx), message)
  }
}

/** The same topic and key are the same message, in a shape that fits every header and column. */
function dedupIdOf(topic: string, key: string): string {
  return uuidText(
    createHash('sha256')
      .update(lengthPrefixed(['latchkey.outbox.v1', topic, key]))
      .digest(),
  )
}
