/**
 * Sends calls that have statements of their own: at most as many at once as there are connections. The others wait in their queue and not
 * in the pool, so that their wait is known for what it is.
 */
import { askOf, batchQueue, type QueuedCall, type QueueOptions, sendAlone, takeCalls } from './batch-queue.ts'

export function sideBySide<Item, Result>(
  kind: QueuedCall<Item, Result>,
  options: QueueOptions,
  connections: number,
): (item: Item) => Promise<Result> {
  let open = 0
  let isPlanned = false
  const send = () => {
    isPlanned = false
    for (const call of takeCalls(queue, connections - open)) {
      open += 1
      void sendAlone(queue, call).then(() => {
        open -= 1
        wake()
      })
    }
  }
  const wake = () => {
    if (isPlanned || open >= connections) return
    isPlanned = true
    setImmediate(send)
  }
  const queue = batchQueue(kind, options, wake)
  return askOf(queue)
}
