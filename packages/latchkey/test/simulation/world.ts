/**
 * Virtual time and what happens in it, one event after the other. Nothing here waits for a real timer: between two events
 * all microtasks run dry, so a seed decides everything.
 */
import type { Clock } from '../../src/ports/clock.ts'
import type { Chance } from './chance.ts'
import type { Faults } from './plan.ts'

/** An engine that can die or stand still. What it has sent may still arrive. */
export interface Process {
  readonly name: string
  alive: boolean
  pausedUntilMs: number
  /** Pauses are kept apart, so that the delay between a decision and its call has a bound: see `pauseMsMax`. */
  nextPauseAtMs: number
  readonly onCrash: Set<() => void>
}

/** Longer than any lease here, so that a paused owner wakes up replaced. */
export const pauseMsMax = 14_000
const pauseEveryMs = 60_000

interface Event {
  readonly atMs: number
  readonly run: () => void
  /** A timer that was cancelled is not an event. */
  readonly wanted: (() => boolean) | undefined
  readonly order: number
}

export interface World {
  readonly chance: Chance
  readonly nowMs: () => number
  faults: Faults
  /** What the network or a server does: no process needs to be alive for it. */
  at(delayMs: number, run: () => void): void
  /** Something arrives at a process: a reply, a timer, a request. Instead it may die or stand still. */
  deliver(process: Process, delayMs: number, run: () => void, wanted?: () => boolean): void
  process(name: string): Process
  crash(process: Process): void
  clockOf(process: Process): Clock
  /** Time passes, and nothing happens meanwhile: what was due is late. */
  leap(spanMs: number): void
  /** Runs one event and everything that follows from it. False: nothing is left to happen. */
  step(): Promise<boolean>
  readonly lines: string[] | undefined
  trace(line: () => string): void
}

export function createWorld({ chance, faults, traced }: { chance: Chance; faults: Faults; traced: boolean }): World {
  const events = eventQueue()
  const lines: string[] | undefined = traced ? [] : undefined
  let nowMs = 0

  const world: World = {
    chance,
    faults,
    lines,
    nowMs: () => nowMs,
    trace: line => void lines?.push(`${nowMs.toFixed(0).padStart(7)} ${line()}`),
    at: (delayMs, run) => events.add({ atMs: nowMs + delayMs, run, wanted: undefined }),
    deliver(process, delayMs, run, wanted = () => true) {
      events.add({ atMs: nowMs + delayMs, run: () => arrive(process, run), wanted: () => process.alive && wanted() })
    },
    process: name => ({ name, alive: true, pausedUntilMs: 0, nextPauseAtMs: 0, onCrash: new Set() }),
    crash(process) {
      if (!process.alive) return
      world.trace(() => `${process.name} CRASHES`)
      process.alive = false
      for (const act of [...process.onCrash]) act()
    },
    clockOf: process => clockOf(world, process),
    leap(spanMs) {
      nowMs += spanMs
    },
    async step() {
      let event = events.next()
      while (event?.wanted?.() === false) event = events.next()
      if (event === undefined) return false
      nowMs = Math.max(nowMs, event.atMs)
      event.run()
      // Node runs a tick only after all microtasks, those that they add included.
      await new Promise<void>(resolve => process.nextTick(resolve))
      return true
    },
  }

  function arrive(process: Process, run: () => void): void {
    if (!process.alive) return
    if (process.pausedUntilMs > nowMs) return later(process, run)
    if (chance.happens(world.faults.crash)) return world.crash(process)
    if (nowMs >= process.nextPauseAtMs && chance.happens(world.faults.pause)) {
      process.pausedUntilMs = nowMs + chance.between(500, pauseMsMax)
      process.nextPauseAtMs = process.pausedUntilMs + pauseEveryMs
      world.trace(() => `${process.name} stands still until ${process.pausedUntilMs.toFixed(0)}`)
      return later(process, run)
    }
    run()
  }

  /** Timers and replies that became due meanwhile come in any order. */
  function later(process: Process, run: () => void): void {
    const delayMs = process.pausedUntilMs - nowMs + chance.next()
    world.at(delayMs, () => arrive(process, run))
  }

  return world
}

/** Wall time an hour off by chance: it decides nothing. */
function clockOf(world: World, process: Process): Clock {
  const skewMs = world.chance.between(-3_600_000, 3_600_000)
  return {
    nowMs: () => 1_800_000_000_000 + world.nowMs() + skewMs,
    monotonicMs: () => world.nowMs(),
    after(delayMs, run) {
      let wanted = true
      world.deliver(
        process,
        delayMs,
        () => wanted && run(),
        () => wanted,
      )
      return () => {
        wanted = false
      }
    },
    random: () => world.chance.next(),
    randomId: () => world.chance.id(),
  }
}

/** A binary heap by time; equal times in the order of their adding. It is the busiest place of a run. */
function eventQueue(): { add(event: Omit<Event, 'order'>): void; next(): Event | undefined } {
  const heap: Event[] = []
  let added = 0
  const isBefore = (left: Event, right: Event) =>
    left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order)

  function sinkFrom(at: number, event: Event): void {
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]]
      const isRight = left !== undefined && right !== undefined && isBefore(right, left)
      const child = isRight ? right : left
      if (child === undefined || isBefore(event, child)) break
      heap[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    heap[at] = event
  }

  return {
    add({ atMs, run, wanted }) {
      const event: Event = { atMs, run, wanted, order: (added += 1) }
      let at = heap.length
      for (let parent = heap[(at - 1) >> 1]; at > 0 && parent !== undefined && isBefore(event, parent);) {
        heap[at] = parent
        at = (at - 1) >> 1
        parent = heap[(at - 1) >> 1]
      }
      heap[at] = event
    },
    next() {
      const first = heap[0]
      const last = heap.pop()
      if (last !== undefined && heap.length > 0) sinkFrom(0, last)
      return first
    },
  }
}
