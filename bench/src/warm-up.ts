/** Runs a server until its hot paths are compiled: before that a request costs several times as much. */
import type { Context } from './context.ts'
import { replayedOf } from './load/request.ts'
import type { Player } from './stage.ts'

/** The cost of a request falls steeply until about here, and by a fifth again until 60,000, which would take too long. */
const requestsMax = 28_000
/** Of those that wait for several commits in a row and have little code of their own to compile. */
const slowRequestsMax = 3_000
/** A server that has not got so far by then is slow, and not cold. */
const secondsMax = { off: 5, on: 2 }
/** No two calls share a key. */
let serial = 0

export interface WarmUp {
  /** With replays of so many completed keys; 0: with new keys. */
  readonly replayedKeys: number
  /** Default 64. A request that is alone takes other ways than one among many. */
  readonly connections?: number
  /** Whether the handlers work meanwhile. Default off: behind 50 ms of work a server would stay cold. */
  readonly work?: 'on' | 'off'
}

export async function warmUp(
  player: Player,
  { replayedKeys, connections = 64, work = 'off' }: WarmUp,
  { load }: Context,
): Promise<void> {
  const keys = replayedKeys > 0 ? replayedOf(replayedKeys) : ({ kind: 'new', prefix: `warm${++serial}-` } as const)
  const { subject, server } = player
  const slow = subject.guard === 'naive' || (subject.guard === 'peer' && subject.store !== 'redis')
  const limit = { seconds: secondsMax[work], requestsMax: slow ? slowRequestsMax : requestsMax }
  await server.work(work)
  const { acknowledged } = await load.run({ port: server.port, connections, keys, ...limit })
  await server.work('on')
  if (replayedKeys === 0) player.expected += acknowledged
}
