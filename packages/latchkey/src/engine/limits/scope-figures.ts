/**
 * How many keys of a scope are open, or how many bytes of it are stored: counted by the store when the scope asks for new keys, at most once a minute,
 * and in between changed by what this process does. While the store answers, no request is refused by a count that is older than five seconds.
 */
import { RecentScopes } from './recent-scopes.ts'
import type { LimitName, QuotaHost, Source } from './source.ts'

/** As often as a sweep. */
const believedMs = 60_000
/** A scope that is over its limit may have ended some of its work since. */
const refusedByMs = 5_000
/** Counting reads many rows: it must not take the connections of a pool. */
const countsMax = 4

interface Figure {
  /** By the last count. Zero before the first. */
  counted: number
  /** By this process, since that count began. */
  changed: number
  countedAtMs: number
  counting: Promise<void> | undefined
}

export interface CountedLimit {
  readonly limit: LimitName
  readonly max: number
  /** What a new key adds at once: many that ask together must not all find the last place. */
  readonly perKey: 0 | 1
  count(scope: string): Promise<number>
}

export class ScopeFigures implements Source {
  readonly limit: LimitName
  private readonly host: Omit<QuotaHost, 'quotas'>
  private readonly counted: CountedLimit
  private readonly figures: RecentScopes<Figure>
  private counts = 0

  constructor(host: Omit<QuotaHost, 'quotas'>, counted: CountedLimit) {
    this.host = host
    this.counted = counted
    this.limit = counted.limit
    this.figures = new RecentScopes(() => ({
      ...{ counted: 0, changed: 0, countedAtMs: Number.NEGATIVE_INFINITY, counting: undefined },
    }))
  }

  take(scope: string, mayWait: boolean): boolean | Promise<boolean> {
    const figure = this.figures.of(scope)
    const ageMs = this.nowMs() - figure.countedAtMs
    const hasRoom = this.hasRoom(figure)
    const isOld = ageMs >= (hasRoom ? believedMs : refusedByMs)
    const counting = isOld ? this.count(scope, figure) : figure.counting
    // A scope that has not been counted yet does not wait for it: as a rule it is nowhere near its limit.
    if (hasRoom || !mayWait || counting === undefined) return this.reserve(figure)
    return counting.then(() => this.reserve(figure))
  }

  giveBack(scope: string): void {
    this.change(scope, -this.counted.perKey)
  }

  /** When it may be counted again. */
  nextInMs(scope: string): number {
    const figure = this.figures.of(scope)
    if (this.hasRoom(figure)) return 0
    return Math.max(1, figure.countedAtMs + refusedByMs - this.nowMs())
  }

  /** What this process has added to the scope, or ended of it. */
  change(scope: string, by: number): void {
    const figure = this.figures.of(scope)
    figure.changed = Math.max(-figure.counted, figure.changed + by)
  }

  private nowMs(): number {
    return this.host.clock.monotonicMs()
  }

  private hasRoom({ counted, changed }: Figure): boolean {
    return counted + changed < this.counted.max
  }

  private reserve(figure: Figure): boolean {
    if (!this.hasRoom(figure)) return false
    figure.changed += this.counted.perKey
    return true
  }

  /** One at a time for a scope. Never rejects: without an answer the figure stays what it was. */
  private count(scope: string, figure: Figure): Promise<void> {
    if (figure.counting !== undefined) return figure.counting
    if (this.counts >= countsMax) return Promise.resolve()
    this.counts += 1
    figure.countedAtMs = this.nowMs()
    figure.counting = this.askForFigure(scope, figure).finally(() => {
      this.counts -= 1
      figure.counting = undefined
    })
    return figure.counting
  }

  private async askForFigure(scope: string, figure: Figure): Promise<void> {
    const { calls, telemetry } = this.host
    const before = figure.changed
    try {
      figure.counted = await calls.call('count', () => this.counted.count(scope))
      // What began meanwhile may be counted twice, until the next count.
      figure.changed = Math.max(-figure.counted, figure.changed - before)
    } catch (error) {
      telemetry.report(`the ${this.limit} of a scope could not be counted: the last known count applies`, {
        error,
        scope,
      })
    }
  }
}
