/** A broker behind a wire that can be cut, and the real relay over a real outbox. */
import { expect } from 'vitest'
import { createRelay, type RelayTurn, type Target } from '../../src/outbox/index.ts'
import type { NewMessage } from '../../src/ports/outbox.ts'
import { message, type OutboxFixture } from './fixture.ts'

export interface StoredMessage {
  readonly id: string
  readonly text: string
  readonly headers: Readonly<Record<string, string>>
}

export interface OpenBroker {
  /** Over a wire that can be cut, with a timeout of about a second. It takes messages of the topic `orders`. */
  readonly target: Target
  /** What the broker has stored so far; messages of one aggregate in their order. */
  stored(): Promise<readonly StoredMessage[]>
  /** The next message whose payload contains `word` is lost, or its confirm is, together with its connection. */
  cut(word: string, lost: 'request' | 'reply'): void
  /** A message that the broker never accepts, and what the target says about it. */
  refused(id: string): { readonly message: NewMessage; readonly cause: string }
  close(): Promise<void>
}

export interface BrokerHarness {
  open(): Promise<OpenBroker>
  /** How many copies a lost confirm leaves: 1 where the broker recognises an id. */
  readonly copies: number
}

/** With a word of its own in the payload, by which the wire finds it. */
export function order(id: string, over: Partial<NewMessage> = {}): NewMessage {
  return message(id, { payload: Buffer.from(JSON.stringify({ word: `word-${id}.` })), ...over })
}

export async function drain(fixture: OutboxFixture, target: Target): Promise<readonly RelayTurn[]> {
  // However often a wire is cut, nothing is parked for that.
  const policy = { backoffMsMax: 60_000, attemptsMax: 1_000 }
  const relay = createRelay({ outbox: fixture.store.outbox, targets: { '*': target }, ...policy })
  const turns: RelayTurn[] = []
  for (;;) {
    const turn = await relay.relayOnce()
    if (turn.kind === 'idle') return turns
    turns.push(turn)
  }
}

/** Until nothing waits, as long as a wire needs to be whole again. */
export async function drainAll(fixture: OutboxFixture, target: Target): Promise<void> {
  await expect
    .poll(
      async () => {
        fixture.makeDue()
        await drain(fixture, target)
        return (await fixture.store.outbox.lag()).waiting
      },
      { timeout: 30_000 },
    )
    .toBe(0)
}
