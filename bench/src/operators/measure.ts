/** How long an operator waits for an answer, one question at a time. */
import { postgresStore } from 'latchkey/stores/postgres'
import pg from 'pg'
import { postgresUs } from '../machine/cpu.ts'
import { type Question, questionsOn, type Sizes } from './questions.ts'
import { openShop } from './shop.ts'

export interface OperatorsOrder extends Sizes {
  readonly url: string
  readonly server: { readonly pid: number; readonly dataDir: string }
  readonly repetitions: number
}

export interface Answered extends Pick<Question, 'name' | 'kind'> {
  /** By repetition. */
  readonly ms: readonly number[]
  /** Of database and application together, on average: other programs on the machine lengthen it less. */
  readonly processorMs: number
  /** What is wrong with the answers: an empty one is quick to give. */
  readonly faults: readonly string[]
}

export async function measureOperators({ url, server, repetitions, ...sizes }: OperatorsOrder): Promise<Answered[]> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const { latchkey } = openShop(postgresStore({ pool }))
  const notes = (await questionsOn(latchkey, sizes)).map(question => ({
    ...{ question, ms: new Array<number>(), processorUs: 0, faults: new Set<string>() },
  }))
  const databaseUs = () => postgresUs(server.pid, server.dataDir)
  // Until their code is compiled, and their connections are open.
  for (const { question } of notes) await question.ask(0)
  for (let n = 1; n <= repetitions; n++) {
    for (const note of notes) {
      const databaseBefore = databaseUs()
      // Looking through /proc takes longer than some answers: the application's own time is taken inside of that.
      const [ownBefore, startedAt] = [process.cpuUsage(), performance.now()]
      const answer = await note.question.ask(n)
      note.ms.push(performance.now() - startedAt)
      const { user, system } = process.cpuUsage(ownBefore)
      note.processorUs += user + system + databaseUs() - databaseBefore
      const fault = faultOf(answer)
      if (fault !== undefined) note.faults.add(fault)
    }
  }
  await latchkey.close()
  await pool.end()
  return notes.map(({ question: { name, kind }, ms, processorUs, faults }) => ({
    ...{ name, kind, ms, processorMs: processorUs / repetitions / 1_000, faults: [...faults] },
  }))
}

function faultOf(answer: Awaited<ReturnType<Question['ask']>>): string | undefined {
  if (answer.kind !== 'found') return `answered ${answer.kind}`
  const { value } = answer
  const { items, groups, partial } = value as { items?: unknown; groups?: unknown; partial?: boolean }
  if (partial === true) return 'was cut off'
  const list = [value, items, groups].find(Array.isArray)
  return list?.length === 0 ? 'was empty' : undefined
}
