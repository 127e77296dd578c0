/** Where commands are carried out: straight at the store, or through an admin API. The same calls either way. */
import type { Admin } from 'latchkey/admin'

/** A call of `Admin` without the person, who is the same for all of them. */
type WithoutPerson<Call> = Call extends (by: never, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Promise<Awaited<Result>>
  : never

type Calls = { readonly [Name in keyof Admin]: WithoutPerson<Admin[Name]> }

export interface Desk extends Omit<Calls, 'startBulk'> {
  /** For people: whose name the acts carry, and where they are done. */
  readonly as: string
  /** Why no act is possible here, known before anything is asked. Undefined: the one who acts finds out. */
  readonly noActs?: string
  /** Runs to its end, or until `signal` aborts. `onRow` gets each result. */
  readonly startBulk: (given: Parameters<Calls['startBulk']>[0]) => ReturnType<Calls['startBulk']>
}

export type { Admin }
