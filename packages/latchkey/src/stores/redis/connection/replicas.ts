/**
 * Whether replicas have what was written, asked by WAIT.
 *
 * WAIT speaks about the writes of the connection it came on: on another connection, or on a new one after a reconnect, it counts replicas that have
 * none of them. So it is sent in the same turn, right behind the script, and does not count if the connection was made anew meanwhile.
 */
import { isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'
import type { RedisClient, Reply } from '../../shared/redis/driver.ts'

export interface ReplicaOptions {
  /** How many replicas must have a claim, an answer or a step before it counts. */
  readonly wait: number
  /** How long to wait for them. WAIT blocks the connection for that long at most: give the store a client of its own. */
  readonly timeoutMs: number
}

export interface Replicas {
  /** To be called in the same turn as the write. Undefined: enough replicas have it. Otherwise the error of the call. */
  proof(): Promise<LatchkeyError | undefined>
}

const shortOfReplicas: unique symbol = Symbol('latchkey: not enough replicas')

/** The write is on the master, and not on as many replicas as were asked for. */
export function isShortOfReplicas(error: unknown): boolean {
  return isLatchkeyError(error) && error.cause === shortOfReplicas
}

export function replicasOf(client: RedisClient, { wait, timeoutMs }: ReplicaOptions): Replicas {
  let connection = 0
  client.on('ready', () => (connection += 1))
  return {
    async proof() {
      const sentOn = connection
      const found = await client.wait?.(wait, timeoutMs)
      const proven = sentOn === connection ? (found ?? 0) : 0
      if (proven >= wait) return undefined
      return new LatchkeyError(
        'store-unavailable',
        `Redis failed: ${proven} of ${wait} replicas confirmed the write within ${timeoutMs} ms`,
        { cause: shortOfReplicas },
      )
    },
  }
}

/** What only looked, or was refused, has written nothing that a replica could lack. */
export function hasWritten(reply: Reply): boolean {
  const first = Array.isArray(reply) ? (reply as readonly Reply[])[0] : reply
  return first !== 0 && first !== null
}
