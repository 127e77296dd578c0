/** Runs a server until its hot paths are compiled: before that a request costs several times as much. */
import type { Context } from './context.ts'
import { replayedOf } from './load/request.ts'
import type { Player } from './stage.ts'

const requestsMax = 8_000
/** A server that has not got so far by then is slow, and not cold. */
const seconds = 4
/** No two calls share a key. */
let serial = 0

/** With replays of so many completed keys; 0: with new keys. */
export async function warmUp(player: Player, replayedKeys: number, { load }: Context): Promise<void> {
  const keys = replayedKeys > 0 ? replayedOf(replayedKeys) : ({ kind: 'new', prefix: `warm${++serial}-` } as const)
  const { port } = player.server
  const { acknowledged } = await load.run({ port, connections: 64, seconds, keys, requestsMax })
  if (replayedKeys === 0) player.expected += acknowledged
}
