/** What each subject does with a duplicate: a fast answer that is wrong is worth nothing. */
import type { Context } from '../context.ts'
import { markdownTable } from '../report/table.ts'
import type { Section, SectionResult } from '../section.ts'
import { openStage, type Player } from '../stage.ts'

const subjects = [
  'postgres',
  'sqlite',
  'memory',
  'floor',
  'naive',
  'powertools-redis',
  'powertools-validated',
  'node-idempotency-redis',
  'steadykey-redis',
  'steadykey-postgres',
  'express-idempotency',
]
/** Long enough that two requests meet inside the handler. */
const workMs = 100

interface Answered {
  readonly status: number
  readonly text: string
}

interface Behaviour {
  readonly name: string
  /** Of twenty requests with one key, all sent at once. */
  readonly runs: number
  readonly statuses: readonly number[]
  readonly retry: 'the same answer' | 'another answer' | 'ran again' | `refused with ${number}`
  readonly otherBody: 'refused' | 'ran' | 'given the first answer'
}

export const behaviour: Section = {
  name: 'behaviour',
  what: 'twenty requests with one key at once, a retry, and the same key with another body',
  async run(context: Context) {
    const stage = await openStage({ subjects, workMs, counted: false }, context)
    try {
      const found: Behaviour[] = []
      for (const player of stage.players) found.push(await observe(player))
      return resultOf(found, stage.leftOut)
    } finally {
      await stage.close()
    }
  },
}

async function observe({ subject, server }: Player): Promise<Behaviour> {
  const post = async (body: object): Promise<Answered> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'behaviour-1' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    })
    return { status: answer.status, text: await answer.text() }
  }
  const order = { sku: 'tea', quantity: 3 }
  const twins = await Promise.all(Array.from({ length: 20 }, () => post(order)))
  const runs = await server.runs()
  const first = twins.find(({ status }) => status === 201)
  const again = await post(order)
  const runsAgain = await server.runs()
  const other = await post({ ...order, quantity: 4 })
  const runsOther = await server.runs()
  return {
    name: subject.name,
    runs,
    statuses: [...new Set(twins.map(({ status }) => status))].toSorted((a, b) => a - b),
    retry: retryOf(again, first, runsAgain > runs),
    otherBody: runsOther > runsAgain ? 'ran' : other.status === 201 ? 'given the first answer' : 'refused',
  }
}

function retryOf(again: Answered, first: Answered | undefined, ranAgain: boolean): Behaviour['retry'] {
  if (ranAgain) return 'ran again'
  if (again.status !== 201) return `refused with ${again.status}`
  return again.text === first?.text ? 'the same answer' : 'another answer'
}

function resultOf(found: readonly Behaviour[], leftOut: readonly string[]): SectionResult {
  const rows = found.map(({ name, runs, statuses, retry, otherBody }) => [
    name,
    runs === 1 ? '1' : `**${runs}**`,
    statuses.join(', '),
    retry === 'the same answer' ? retry : `**${retry}**`,
    otherBody === 'refused' ? otherBody : `**${otherBody}**`,
  ])
  const head = [
    'subject',
    'handler runs for 20 requests at once',
    'statuses',
    'a retry afterwards',
    'same key, other body',
  ]
  const ours = found.filter(({ name }) => name.startsWith('Latchkey'))
  const wrong = ours.filter(
    ({ runs, retry, otherBody }) => runs !== 1 || retry !== 'the same answer' || otherBody !== 'refused',
  )
  return {
    markdown: [
      '### Behaviour: what happens to duplicates',
      markdownTable(head, rows),
      ...leftOut.map(text => `Left out: ${text}.`),
    ].join('\n\n'),
    figures: {},
    faults: wrong.map(({ name }) => `${name}: duplicates are not treated as promised`),
    data: found,
  }
}
