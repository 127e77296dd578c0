/** The server that holds Latchkey's rows, as the nemesis breaks it and as the checker's facts are read from it: without Latchkey. */
import type { Facts } from '../check/facts.ts'

export type KeyFacts = Pick<Facts, 'keys' | 'proofs' | 'unknowns' | 'parkedReceipts'>

export interface UnknownRow {
  readonly id: string
  readonly operation: string
}

export interface KeyServer {
  /** Direct. The applications use a proxy to it. */
  readonly url: string
  /** The reply that a proxy swallows: to a message from a client that has the last word about some work. */
  readonly lastWord: LastWord
  /** kill -9. */
  kill(): Promise<void>
  restart(): Promise<void>
  /** Rows and messages that are not at rest yet. */
  moving(): Promise<number>
  /** Undefined: none is unknown, or the server is away. */
  oldestUnknown(): Promise<UnknownRow | undefined>
  readFacts(): Promise<KeyFacts>
  stop(): Promise<void>
}

export interface LastWord {
  readonly name: 'commit' | 'answer'
  isIn(bytes: Buffer): boolean
}
