/** How long an operator waits for an answer, one question at a time. */
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { type Question, questionsOn, type Sizes } from './questions.ts'
import { openShop } from './trouble.ts'

export interface OperatorsOrder extends Sizes {
  readonly url: string
  readonly repetitions: number
}

export interface Answered extends Pick<Question, 'name' | 'kind'> {
  /** By repetition. */
  readonly ms: readonly number[]
  /** What is wrong with the answers: an empty one is quick to give. */
  readonly faults: readonly string[]
}

export async function measureOperators({ url, repetitions, ...sizes }: OperatorsOrder): Promise<readonly Answered[]> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const { latchkey } = openShop(postgresStore({ pool }))
  const questions = await questionsOn(latchkey, sizes)
  const answered = questions.map(({ name, kind }) => ({ name, kind, ms: new Array<number>(), faults: new Set<string>() }))
  // The first round compiles code and opens connections.
  for (let round = -1; round < repetitions; round++) {
    for (const [at, { ask }] of questions.entries()) {
      const startedAt = performance.now()
      const answer = await ask(round + 1)
      const ms = performance.now() - startedAt
      if (round >= 0) answered[at]?.ms.push(ms)
      const fault = faultOf(answer)
      if (fault !== undefined) answered[at]?.faults.add(fault)
    }
  }
  await latchkey.close()
  await pool.end()
  return answered.map(({ faults, ...rest }) => ({ ...rest, faults: [...faults] }))
}

function faultOf(answer: Awaited<ReturnType<Question['ask']>>): string | undefined {
  if (answer.kind !== 'found') return `answered ${answer.kind}`
  const { value } = answer
  const { items, groups, partial } = value as { items?: unknown; groups?: unknown; partial?: boolean }
  if (partial === true) return 'was cut off'
  const list = [value, items, groups].find(Array.isArray)
  return list?.length === 0 ? 'was empty' : undefined
}
