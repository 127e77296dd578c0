/** One kind of call: gathered, sent as one statement, and each alone where that was refused for one of its rows. */
import { systemClock } from '../../../ports/clock.ts'
import { gather, type GatherLimits } from './gather.ts'
import { untilLaneIsFree } from './single-row.ts'
import { isRefusalOfRows } from '../connection/errors.ts'

export interface Lane<Item, Result> {
  readonly name: string
  readonly keyOf: (item: Item) => string
  /** Whose call it is, where the call says so. */
  readonly scopeOf?: (item: Item) => string
  /** The statement that knows every state. */
  readonly alone: (item: Item) => Promise<Result>
  /** For a batch of one, where there is a cheaper way than the batch's. */
  readonly one?: (item: Item) => Promise<Result>
  readonly together: (items: readonly Item[]) => Promise<readonly (Result | Promise<Result>)[]>
  readonly mayShare?: (result: Result, sent: Item, joined: Item) => boolean
}

export type OpenLane = <Item, Result>(lane: Lane<Item, Result>) => (item: Item) => Promise<Result>

export function laneOn(limits: GatherLimits): OpenLane {
  return <Item, Result>({ name, keyOf, scopeOf, alone, one, together, mayShare }: Lane<Item, Result>) => {
    // Refused for one of its rows, and nothing of it was written: each goes alone, and stands in nobody's way. Else nobody
    // knows what was written. Who asked finds out, by claim id.
    const orElse = <Value>(value: () => Value) => {
      return (error: unknown): Value => {
        if (isRefusalOfRows(error)) return value()
        throw error
      }
    }
    return gather<Item, Result>({
      name,
      keyOf,
      scopeOf,
      mayShare,
      limits,
      clock: systemClock,
      async send(items) {
        const [first] = items
        if (one === undefined || items.length > 1 || first === undefined) {
          return together(items).catch(orElse(() => items.map(alone)))
        }
        const answer = one(first).catch(orElse(() => alone(first)))
        await untilLaneIsFree(answer)
        return [answer]
      },
    })
  }
}
