/** What a seed asks for: how many of each, and how often what goes wrong. */
import type { Chance } from './chance.ts'

/** Probabilities, per call or per arrival at a process. */
export interface Faults {
  readonly crash: number
  readonly pause: number
  /** A store call or its reply is lost. */
  readonly lose: number
  /** From this call on the store is out of reach for seconds. */
  readonly outage: number
  /** A store call takes seconds: longer than its caller waits. */
  readonly slow: number
  /** A transaction is rolled back at its COMMIT. */
  readonly conflict: number
  /** A call to the provider fails, one way or another. */
  readonly provider: number
}

export const noFaults: Faults = { crash: 0, pause: 0, lose: 0, outage: 0, slow: 0, conflict: 0, provider: 0 }

export interface Plan {
  readonly engines: number
  readonly clients: number
  readonly keys: number
  readonly requestsPerClient: number
  readonly faults: Faults
  readonly faultsUntilMs: number
  /** How long the provider promises to recognise keys: short enough for it to forget while a row waits. */
  readonly windowMs: number
  /** A worker must have begun deferred work within this: shorter than an outage, or longer. */
  readonly deadlineMs: number
  /** Look-ups are registered; without them unknown rows wait for messages and people. */
  readonly lookUps: boolean
  /** None of them is ever answered. */
  readonly asksInVain: boolean
  /** The provider reports by itself what it did. */
  readonly webhooks: boolean
  /** Guarded answers leave a tombstone. */
  readonly tombstones: boolean
  /** An operator settles unknown rows and unparks others; without one they stay. */
  readonly operator: boolean
  /** The first process to start, and some that follow it, declare another version. */
  readonly rollingUpgrade: boolean
  /** At the end time leaps past every retention, and the keys are used again. */
  readonly secondLife: boolean
}

/** Many seeds are calm in some respect: deep paths need luck, and every fault at once leaves none. */
export function planOf(chance: Chance): Plan {
  return {
    engines: chance.pick([2, 2, 3]),
    clients: chance.whole(2, 3),
    keys: chance.whole(1, 2),
    requestsPerClient: chance.whole(1, 3),
    faults: {
      crash: chance.pick([0, 0.002, 0.006, 0.02]),
      pause: chance.pick([0, 0.005, 0.015]),
      lose: chance.pick([0, 0.01, 0.04, 0.12]),
      outage: chance.pick([0, 0, 0.004]),
      slow: chance.pick([0, 0.01, 0.05]),
      conflict: chance.pick([0, 0.05, 0.2]),
      provider: chance.pick([0, 0.1, 0.3, 0.6]),
    },
    faultsUntilMs: chance.between(15_000, 90_000),
    windowMs: chance.pick([12_000, 20_000]),
    deadlineMs: chance.pick([4_000, 60_000, 60_000]),
    lookUps: chance.happens(0.7),
    asksInVain: chance.happens(0.06),
    webhooks: chance.happens(0.5),
    tombstones: chance.happens(0.3),
    operator: chance.happens(0.5),
    rollingUpgrade: chance.happens(0.1),
    secondLife: chance.happens(0.15),
  }
}
