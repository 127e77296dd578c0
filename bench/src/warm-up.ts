/** Runs a server until its hot paths are compiled: before that a request costs several times as much. */
import type { Context } from './context.ts'
import { replayedOf } from './load/request.ts'
import type { Player } from './stage.ts'

/** The cost of a request falls until about here; with half as many it was half as high again. */
const requestsMax = 16_000
/** Of those that wait for several commits in a row and have little code of their own to compile. */
const slowRequestsMax = 3_000
/** A server that has not got so far by then is slow, and not cold. */
const seconds = 4
/** No two calls share a key. */
let serial = 0

/** With replays of so many completed keys; 0: with new keys. A request that is alone takes other ways than one among many. */
export async function warmUp(
  player: Player,
  { replayedKeys, connections = 64 }: { replayedKeys: number; connections?: number },
  { load }: Context,
): Promise<void> {
  const keys = replayedKeys > 0 ? replayedOf(replayedKeys) : ({ kind: 'new', prefix: `warm${++serial}-` } as const)
  const { subject, server } = player
  const slow = subject.guard === 'naive' || (subject.guard === 'peer' && subject.store !== 'redis')
  const limit = { seconds, requestsMax: slow ? slowRequestsMax : requestsMax }
  const { acknowledged } = await load.run({ port: server.port, connections, keys, ...limit })
  if (replayedKeys === 0) player.expected += acknowledged
}
