import { runInThisContext } from 'node:vm'
import { expect, it } from 'vitest'
import { instrument, type TracedFunction } from './instrument.ts'

const source = `
function outer(n) { return inner(n) + shape.twice(n) }
const inner = n => add(n)(1)
const add = a => b => a + b
const shape = { factor: 2, twice(n) { return n * this.factor }, nothing() {}, count() { return arguments.length } }
const later = async n => (await Promise.resolve(n)) + 1
function* numbers() { yield 1 }
return { outer, shape, later, numbers }
`

function evaluated() {
  const functions: TracedFunction[] = []
  const called: string[] = []
  const traced = (number: number, run: () => unknown) => {
    called.push(functions[number]?.name ?? '?')
    return run()
  }
  const text = instrument('sample.ts', `(() => {${source}})()`, functions)
  // The rewritten text is what the test is about.
  const run = runInThisContext(`traced => ${text}`) as (report: typeof traced) => {
    outer(n: number): number
    shape: { twice(n: number): number; nothing(): void; count(...args: number[]): number }
    later(n: number): Promise<number>
    numbers(): Iterable<number>
  }
  const made = run(traced)
  called.length = 0
  return { made, called }
}

it('reports each call of a function by its name, and changes nothing else', async () => {
  const { made, called } = evaluated()
  expect(made.outer(3)).toBe(10)
  expect(called).toEqual(['outer', 'inner', 'add', 'add › λ', 'twice'])
  expect([made.shape.nothing(), made.shape.count(1, 2, 3)]).toEqual([undefined, 3])
  expect(await made.later(4)).toBe(5)
  expect([...made.numbers()]).toEqual([1])
  expect(called.slice(5)).toEqual(['nothing', 'count', 'later'])
})
