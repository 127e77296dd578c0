/** A scene: its actions, and what it expects of them. verdict.ts checks what every scene must end with. */
import type { Provider } from '../provider-process.ts'
import type { Answer, Client, Path, Wish } from './client.ts'
import type { Stage } from './stage.ts'

export interface Scene {
  readonly title: string
  /** What goes wrong. */
  readonly premise: string
  play(play: Play): Promise<void>
}

export interface Play {
  readonly stage: Stage
  readonly provider: Provider
  readonly client: Client
  /** A new wish, with a new key and a new amount. */
  wish(path: Path, like?: Partial<Wish>): Wish
  /** Sends it, and records what the client saw. */
  send(wish: Wish, signal?: AbortSignal): Promise<Answer>
  /** Retries, like a patient client, until the answer fits. Records each answer that differs from the one before. */
  sendUntil(wish: Wish, isEnd: (answer: Answer) => boolean): Promise<Answer>
  /** The same, until it is answered with 201. */
  sendUntilDone(wish: Wish): Promise<Answer>
  charged(wish: Wish): Promise<boolean>
  /** Records an event that no client caused: the actor, and the result. */
  happened(who: string, what: string): void
  /** Shows what the scene is waiting for. */
  tell(line: string): void
  /** The scene fails with this sentence unless it is true. */
  expect(isSo: boolean, sentence: string): void
}
