/** A scene: what is done, and what must be true besides. What every scene must end with is checked in verdict.ts. */
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
  /** A wish of its own: nobody else has its key or its amount. */
  wish(path: Path, like?: Partial<Wish>): Wish
  /** Sends it, and keeps what the client saw. */
  send(wish: Wish, signal?: AbortSignal): Promise<Answer>
  /** As a patient client: again until it is answered so. Keeps the answers that differ from the one before. */
  sendUntil(wish: Wish, isEnd: (answer: Answer) => boolean): Promise<Answer>
  /** The same, until it is answered with 201. */
  sendUntilDone(wish: Wish): Promise<Answer>
  charged(wish: Wish): Promise<boolean>
  /** What happened apart from the clients: who, and what came of it. */
  happened(who: string, what: string): void
  /** What the stage is waiting for. */
  tell(line: string): void
  /** True, or the scene has failed with this sentence. */
  expect(isSo: boolean, sentence: string): void
}
