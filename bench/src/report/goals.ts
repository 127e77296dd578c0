/** Compares the figures with the goals. */
import { readFileSync } from 'node:fs'
import type { Figure } from '../statistics.ts'

export type Goal = {
  /** What is measured, for the table. */
  readonly why: string
  /** The aim, where it is not reached yet. The bar is then what was reached, so that it is not lost again. */
  readonly aim?: number
} & ({ readonly atLeast: number } | { readonly atMost: number })

export type Goals = Readonly<Record<string, Goal>>

export interface Verdict {
  readonly name: string
  readonly goal: Goal
  readonly found: Figure | undefined
  readonly met: boolean
}

export function readGoals(file: string): Goals {
  // Edited by hand. A goal without a measurement counts as missed.
  return JSON.parse(readFileSync(file, 'utf8')) as Goals
}

/** Goals of the given sections only: a partial run is judged by what it measured. */
export function judge(goals: Goals, figures: ReadonlyMap<string, Figure>, sections: readonly string[]): Verdict[] {
  return Object.entries(goals)
    .filter(([name]) => sections.some(section => name.startsWith(`${section}: `)))
    .map(([name, goal]) => {
      const found = figures.get(name)
      return { name, goal, found, met: found !== undefined && isMet(goal, found.value) }
    })
}

export function isMet(goal: Goal, value: number): boolean {
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost
}

/** The goal with its aim for a bar. */
export function aimOf(goal: Goal): Goal {
  if (goal.aim === undefined) return goal
  return 'atLeast' in goal ? { why: goal.why, atLeast: goal.aim } : { why: goal.why, atMost: goal.aim }
}

export function barOf(goal: Goal): string {
  return 'atLeast' in goal ? `at least ${goal.atLeast}` : `at most ${goal.atMost}`
}
