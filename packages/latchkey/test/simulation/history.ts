/**
 * What has happened, and what must never happen. Every change of a row, arrival at the provider and reply to a client comes
 * through here, and the first broken rule ends the run.
 */
import type { Answer } from '../../src/engine/answer.ts'
import { downstreamKey } from '../../src/engine/execution.ts'
import type { Outcome } from '../../src/ports/outcome.ts'
import type { Attributes } from '../../src/ports/telemetry.ts'
import { checkChange, type Truth } from './change-rules.ts'
import type { Change } from './database.ts'
import type { Asked } from './operations.ts'
import { isRepeatable, isTooLate, type StoredRow } from './stored-row.ts'
import type { Written } from './transactions.ts'

export interface Run {
  readonly id: string
  readonly fence: number
}

interface Grant {
  readonly fence: number
  readonly generation: number
  readonly fingerprint: string
}

export interface History {
  /** The first rule that was broken. It is noted, not thrown: an engine would take it for a handler's error. */
  broken(): string | undefined
  break(rule: string): void
  readonly seen: ReadonlyMap<string, number>
  /** Something that a good set of seeds meets at least once. */
  saw(what: string): void
  changed(change: Change): void
  journalRead(row: StoredRow): void
  committed(writes: readonly Written[]): void
  asked(asked: Asked): void
  /** The handler or the definition begins. */
  started(run: Run & { readonly amount: number }): void
  /** An effect is called: not yet at the provider. */
  called(call: Run & { readonly effect: string; readonly key: string }): void
  /** At the provider, before it acts. */
  arrived(call: { readonly id: string; readonly effect: string; readonly key: string }): void
  /** The provider did it, or refused it for good; the result. */
  acted(call: Run & { readonly effect: string; readonly kind: 'happened' | 'declined' }): string
  /** A metric of an engine. */
  counted(metric: string, attributes: Attributes): void
  replied(asked: Asked, answer: Answer): void
}

export interface HistoryOptions {
  /** The longest time between the grant, which looks at an open intent's window, and the call that it allows. */
  readonly callsWithinMs: number
  readonly now: () => number
  readonly rowOf: (id: string) => StoredRow | undefined
  /** A call to the provider is under way for this row. */
  readonly underWay: (id: string) => boolean
}

/** What is remembered to check the rest against. */
interface Facts {
  readonly seen: Map<string, number>
  readonly grants: Map<string, readonly Grant[]>
  readonly outcomes: Map<string, readonly string[]>
  readonly counts: Map<string, number>
  /** Downstream keys whose intent was committed. */
  readonly intents: Set<string>
  /** Effects of which an owner has learned that they may not be repeated. */
  readonly doubts: Set<string>
  /** Grants of work that was too late to begin. */
  readonly tooLate: Set<string>
  /** What the provider answered, by generation and effect. */
  readonly results: Map<string, readonly string[]>
  broken: string | undefined
}

export function history(options: HistoryOptions): History {
  const facts: Facts = {
    seen: new Map(),
    grants: new Map(),
    outcomes: new Map(),
    counts: new Map(),
    intents: new Set(),
    doubts: new Set(),
    tooLate: new Set(),
    results: new Map(),
    broken: undefined,
  }
  return {
    seen: facts.seen,
    saw: what => void count(facts.seen, what),
    counted(metric, { operation, detail = '' }) {
      count(facts.seen, `${metric} ${detail}`)
      // Guarded work has no epochs: a message does not show which attempt it is about.
      if (detail === 'contradiction' && operation !== 'hold') fail(facts, `I8 evidence contradicts: ${operation}`)
    },
    broken: () => facts.broken,
    break: rule => void (facts.broken ??= rule),
    ...ofRows(facts, options),
    ...ofRuns(facts, options),
    ...ofTheProvider(facts, options),
  }
}

/** Says how often it has happened by now. */
function count(counts: Map<string, number>, key: string): number {
  const total = (counts.get(key) ?? 0) + 1
  counts.set(key, total)
  return total
}

function fail(facts: Facts, rule: string): void {
  facts.broken ??= rule
}

function once(facts: Facts, key: string, rule: string): void {
  if (count(facts.counts, key) > 1) fail(facts, `${rule}: ${key}`)
}

function grantOf({ grants }: Facts, { id, fence }: Run): Grant | undefined {
  return grants.get(id)?.findLast(grant => grant.fence === fence)
}

function generationOf({ grants }: Facts, id: string): number {
  return grants.get(id)?.at(-1)?.generation ?? 0
}

/** The owner of the row learns about its steps. */
function noteDoubts({ doubts }: Facts, { id, generation, fence, steps }: StoredRow, nowMs: number): void {
  for (const step of steps) {
    if (step.state === 'open' && !isRepeatable(step, nowMs)) doubts.add(`${id} ${generation} ${fence} ${step.name}`)
  }
}

type OfRows = Pick<History, 'changed' | 'journalRead' | 'committed'>

function ofRows(facts: Facts, { now, underWay }: HistoryOptions): OfRows {
  const { grants, outcomes, counts, intents, seen } = facts
  return {
    changed(change) {
      const { id, before, after, what } = change
      const place = (effect: string) => `${id} generation ${after?.generation} ${effect}`
      const truth: Truth = {
        nowMs: now(),
        executions: effect => counts.get(place(effect)) ?? 0,
        results: effect => facts.results.get(place(effect)) ?? [],
        underWay: () => underWay(id),
      }
      checkChange(change, truth, rule => fail(facts, rule))
      if (after !== undefined && after.fence !== before?.fence) {
        const { fence, generation } = after
        const fingerprint = Buffer.from(after.fingerprint).toString('hex')
        grants.set(id, [...(grants.get(id) ?? []), { fence, generation, fingerprint }])
        noteDoubts(facts, after, now())
        const begins = after.state === 'in_progress' && after.steps.length === 0
        if (begins && isTooLate(after, now())) facts.tooLate.add(`${id} ${generation} ${fence}`)
      }
      if (after?.state === 'completed' && (before?.state !== 'completed' || before.fence !== after.fence)) {
        once(facts, `${id} generation ${after.generation} completed`, 'I1 one completion')
        outcomes.set(id, [...(outcomes.get(id) ?? []), bytesOf(after.outcome)])
      }
      const opened = after?.steps.find(step => what === `intent ${step.name}`)
      if (opened !== undefined) intents.add(downstreamKey(id, opened.name, 'uuid', opened.epoch))
      count(seen, `${change.by}: ${what.split(' ')[0]} ${before?.state ?? 'none'} → ${after?.state ?? 'none'}`)
    },
    journalRead(row) {
      // Look-ups of an unknown row read it as well.
      if (row.state === 'in_progress') noteDoubts(facts, row, now())
    },
    committed(writes) {
      for (const { id, name } of writes)
        once(facts, `${id} generation ${generationOf(facts, id)} wrote ${name}`, 'I1 business rows')
    },
  }
}

function ofRuns(facts: Facts, { rowOf }: HistoryOptions): Pick<History, 'asked' | 'started' | 'replied'> {
  const inputs = new Map<string, number>()
  return {
    asked({ request: { fingerprint }, input }) {
      inputs.set(Buffer.from(fingerprint).toString('hex'), input.amount)
    },
    started(run) {
      const grant = grantOf(facts, run)
      if (grant === undefined) return fail(facts, `I3 a run without a grant: ${run.id} fence ${run.fence}`)
      if (inputs.get(grant.fingerprint) !== run.amount) fail(facts, `I15 a mismatch runs: ${run.id}`)
      once(facts, `${run.id} generation ${grant.generation} fence ${run.fence} started`, 'one run per grant')
      if (facts.tooLate.has(`${run.id} ${grant.generation} ${run.fence}`))
        fail(facts, `I14 work past its deadline runs: ${run.id}`)
      if (rowOf(run.id)?.fence !== run.fence) count(facts.seen, 'a replaced owner began to run')
    },
    replied({ request: { identity } }, answer) {
      if (answer.kind === 'accepted' && rowOf(answer.id) === undefined)
        fail(facts, `I14 accepted and lost: ${answer.id}`)
      if (answer.kind === 'refused') count(facts.seen, `refused ${answer.refusal.code}`)
      const final = finalOf(answer)
      if (final === undefined) return
      if (!(facts.outcomes.get(identity.id) ?? []).includes(bytesOf(final))) {
        fail(facts, `I7 a client saw what is not stored: ${identity.operation} ${identity.id} ${bytesOf(final)}`)
      }
      if (final.status === 408) count(facts.seen, 'work past its deadline was answered')
      count(facts.seen, answer.kind === 'replayed' ? 'a reply was replayed' : 'a reply was stored')
    },
  }
}

type OfTheProvider = Pick<History, 'called' | 'arrived' | 'acted'>

function ofTheProvider(facts: Facts, { now, rowOf, callsWithinMs }: HistoryOptions): OfTheProvider {
  let results = 0
  return {
    called({ id, fence, effect, key }) {
      const generation = grantOf(facts, { id, fence })?.generation
      if (facts.doubts.has(`${id} ${generation} ${fence} ${effect}`))
        fail(facts, `I8 ${effect} of ${id} is called in doubt`)
      const open = rowOf(id)?.steps.find(step => step.name === effect && step.state === 'open')
      const isOwner = rowOf(id)?.fence === fence
      if (open !== undefined && isOwner && key !== downstreamKey(id, effect, 'uuid', open.epoch))
        fail(facts, `I9 ${effect} of ${id} is called with the key of another epoch`)
      if (open?.repeatUntilMs === undefined) return
      const lateMs = now() - open.repeatUntilMs
      if (lateMs >= callsWithinMs) fail(facts, `I8 ${effect} of ${id} is called ${lateMs} ms after its window`)
    },
    arrived({ id, effect, key }) {
      if (!facts.intents.has(key)) fail(facts, `I9 no intent before the call: ${effect} of ${id}`)
    },
    acted({ id, fence, effect, kind }) {
      const generation = grantOf(facts, { id, fence })?.generation
      const place = `${id} generation ${generation} ${effect}`
      const result = `${effect} ${kind} ${(results += 1)}`
      facts.results.set(place, [...(facts.results.get(place) ?? []), result])
      if (kind === 'declined') return result
      const times = count(facts.counts, place)
      // An operator reports "never happened" only if that is so: a second execution is a fault unless it is harmless.
      const harmless = rowOf(id)?.operation === 'rerun'
      if (times > 1 && !harmless) fail(facts, `I8 executed ${times} times: ${effect} of ${id} generation ${generation}`)
      return result
    },
  }
}

/** What a client may rely on: answers that are kept. */
function finalOf(answer: Answer): Outcome | undefined {
  if (answer.kind === 'replayed') return answer.outcome
  if (answer.kind !== 'executed' || answer.stored !== 'yes' || answer.attempt.kind !== 'answered') return undefined
  return answer.attempt.outcome
}

function bytesOf(outcome: Outcome | undefined): string {
  return outcome === undefined ? 'nothing' : `${outcome.status} ${Buffer.from(outcome.body ?? []).toString()}`
}
