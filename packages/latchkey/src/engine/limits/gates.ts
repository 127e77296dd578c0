/** What a request passes: the limits of all operations together, and those of its own. */
import type { Limits } from './limits.ts'
import type { Figures } from './with-figures.ts'
import type { RefusalPace } from './refusal-pace.ts'
import type { LimitKind, LimitName, Source } from './source.ts'

/** Which limit refuses, and when there may be room. */
export interface Excess {
  readonly limit: LimitName
  readonly waitMs: number
}

/** Undefined: it may pass. A promise only where the store has to be asked. */
export type Taken = Excess | undefined | Promise<Excess | undefined>

/** The limits of one kind of event. */
export interface Gate {
  take(scope: string): Taken
  giveBack(scope: string): void
}

export interface Gates extends Readonly<Record<LimitKind, Gate>> {
  readonly figures: Figures
  /** When a refusal may be sent. */
  readonly pace: Pick<RefusalPace, 'wait'>
}

export interface OperationGates extends Gates {
  /** Never wait, neither for the store nor with a refusal: for a transaction of the caller's, which may hold the only connection. */
  readonly waitless: Gates
}

const atOnce: Gates['pace'] = { wait: async () => {} }

/** Undefined: nothing is limited, and nothing is paid for it. */
export function gatesOf(whole: Limits | undefined, own: Limits | undefined): OperationGates | undefined {
  const first = whole ?? own
  if (first === undefined) return undefined
  const all = [whole, own].filter(limits => limits !== undefined)
  return { ...gatesThrough(all, first.pace), waitless: gatesThrough(all, undefined) }
}

/** `pace` undefined: nothing waits. */
function gatesThrough(all: readonly Limits[], pace: RefusalPace | undefined): Gates {
  const gate = (kind: LimitKind) =>
    gateOf(
      all.flatMap(({ sources }) => sources[kind]),
      pace !== undefined,
    )
  return {
    'new-keys': gate('new-keys'),
    lookups: gate('lookups'),
    mismatches: gate('mismatches'),
    pace: pace ?? atOnce,
    figures: {
      openKeys: all.flatMap(({ figures }) => figures.openKeys),
      storedBytes: all.flatMap(({ figures }) => figures.storedBytes),
    },
  }
}

function gateOf(all: readonly Source[], mayWait: boolean): Gate {
  /** Those before `from` have let it pass. */
  function takeFrom(scope: string, from: number): Taken {
    for (const [at, source] of all.entries()) {
      if (at < from) continue
      const passes = source.take(scope, mayWait)
      if (passes === true) continue
      const refuse = () => excess(scope, source, all.slice(0, at))
      if (passes === false) return refuse()
      return passes.then(answer => (answer ? takeFrom(scope, at + 1) : refuse()))
    }
    return undefined
  }

  function excess(scope: string, { limit }: Source, taken: readonly Source[]): Excess {
    for (const source of taken) source.giveBack(scope)
    return { limit, waitMs: Math.max(...all.map(source => source.nextInMs(scope))) }
  }

  return {
    take: scope => takeFrom(scope, 0),
    giveBack(scope) {
      for (const source of all) source.giveBack(scope)
    },
  }
}
