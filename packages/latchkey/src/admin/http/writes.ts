/** POST: acts, each with a version, a reason and a key that makes it happen once. */
import { isRowId } from '../../engine/request.ts'
import type { Actor, Admin, BulkGiven, FindWhat, SettleGiven } from '../admin.ts'
import type { ActOutcome, BulkOutcome, Revealed } from '../results.ts'
import { type Answer, problem, shownBytes } from './answer.ts'
import type { Body, Fields } from './body.ts'
import { answerRead } from './reads.ts'

export interface WriteRoute {
  readonly fields: Fields
  /** It needs If-Match. */
  readonly onRow: boolean
  /** A read whose words must not stand in an address: no key, no version, no reason. */
  readonly isRead?: boolean
  /** What it shows must not be stored again under the key of the request. */
  readonly isShown?: boolean
  run(asked: Writing): Promise<Answer>
}

export interface Writing {
  readonly admin: Admin
  readonly by: Actor
  readonly body: Body
  readonly version: string
  /** Called with the work that continues after the answer. */
  readonly background: (work: Promise<unknown>) => void
}

function answerAct(outcome: ActOutcome | BulkOutcome): Answer {
  switch (outcome.kind) {
    case 'done':
    case 'cancelled':
      return { status: 200, body: outcome }
    case 'planned':
      return { status: 201, body: outcome }
    case 'started':
    case 'second-person-needed':
      return { status: 202, body: outcome }
    default: {
      const { kind, ...more } = outcome
      return problem(kind, 'why' in more ? { ...more, detail: more.why } : more)
    }
  }
}

function answerRevealed(shown: Revealed): Answer {
  if (shown.kind === 'revealed') return { status: 200, body: { ...shown, body: shownBytes(shown.body) } }
  return answerAct(shown)
}

/** Texts of a body; anything else is an empty one, which the service refuses. */
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

const reasoned: Fields = { reason: 'text' }
const settled: Fields = {
  ...reasoned,
  effect: 'text',
  answer: 'text',
  evidence: { kind: 'text', reference: 'text', value: 'any' },
  response: { status: 'number', json: 'any' },
}

type RowActName = 'park' | 'resume' | 'take' | 'note'

function rowRoute(name: string, id: string): WriteRoute | undefined {
  const given = ({ body, version }: Writing) => ({ id, version, reason: text(body['reason']) })
  switch (name) {
    case 'park':
    case 'resume':
    case 'take':
    case 'note':
      return {
        fields: reasoned,
        onRow: true,
        run: async asked => answerAct(await asked.admin[name satisfies RowActName](asked.by, given(asked))),
      }
    case 'reconcile':
      return {
        fields: reasoned,
        onRow: true,
        run: async asked => answerAct(await asked.admin.lookUp(asked.by, given(asked))),
      }
    case 'forget':
      return {
        ...{ fields: { ...reasoned, confirm: 'text' }, onRow: true },
        run: async asked =>
          answerAct(await asked.admin.forget(asked.by, { ...given(asked), confirm: text(asked.body['confirm']) })),
      }
    case 'reveal':
      return {
        ...{ fields: { ...reasoned, what: 'text' }, onRow: true, isShown: true },
        // Checked by the service.
        run: async asked =>
          answerRevealed(
            await asked.admin.reveal(asked.by, {
              ...given(asked),
              what: text(asked.body['what']) as 'input' | 'outcome',
            }),
          ),
      }
    case 'settle':
      return {
        ...{ fields: settled, onRow: true },
        // Checked by the service.
        run: async asked =>
          answerAct(await asked.admin.settle(asked.by, { ...(asked.body as unknown as SettleGiven), ...given(asked) })),
      }
    default:
      return undefined
  }
}

const lookUp: WriteRoute = {
  fields: { scope: 'scope', operation: 'text', key: 'text', keyNamespace: 'text', reference: 'text', id: 'text' },
  ...{ onRow: false, isRead: true },
  async run({ admin, by, body }) {
    const isNamed =
      ['reference', 'id'].some(name => typeof body[name] === 'string') ||
      ['scope', 'operation', 'key'].every(name => body[name] !== undefined)
    if (!isNamed) return problem('invalid', { detail: 'give scope, operation and key; or a reference; or an id' })
    return answerRead(await admin.find(by, body as unknown as FindWhat))
  },
}

/** Undefined: there is no such route. */
export function writeRoute(path: readonly string[]): WriteRoute | undefined {
  const [first, second, third, fourth, ...more] = path
  if (first === undefined || more.length > 0) return undefined
  if (first === 'keys' && second === 'lookup' && third === undefined) return lookUp
  if (first === 'keys' && second !== undefined && isRowId(second) && third !== undefined && fourth === undefined)
    return rowRoute(third, second)
  if (first === 'bulk') return fourth === undefined ? bulkRoute(second, third) : undefined
  if (first === 'proposals' && second !== undefined && fourth === undefined) return proposalRoute(second, third)
  if (second !== 'parked' || third === undefined || fourth === undefined) return undefined
  if (first === 'outbox') return outboxRoute(third, fourth)
  return first === 'inbox' ? inboxRoute(third, fourth) : undefined
}

function outboxRoute(position: string, act: string): WriteRoute | undefined {
  if (act !== 'redrive' && act !== 'skip') return undefined
  return {
    ...{ fields: reasoned, onRow: false },
    async run({ admin, by, body }) {
      const given = { position, reason: text(body['reason']) }
      return answerAct(await (act === 'redrive' ? admin.redriveOutbox(by, given) : admin.skipOutbox(by, given)))
    },
  }
}

function inboxRoute(id: string, act: string): WriteRoute | undefined {
  if (act === 'redrive')
    return {
      ...{ fields: { ...reasoned, as: 'text' }, onRow: false },
      async run({ admin, by, body }) {
        const as = typeof body['as'] === 'string' ? { as: body['as'] } : {}
        return answerAct(await admin.redriveInbox(by, { id, reason: text(body['reason']), ...as }))
      },
    }
  if (act !== 'discard') return undefined
  return {
    fields: reasoned,
    onRow: false,
    run: async ({ admin, by, body }) => answerAct(await admin.discardInbox(by, { id, reason: text(body['reason']) })),
  }
}

function proposalRoute(proposalId: string, act: string | undefined): WriteRoute | undefined {
  if (act !== 'approve' && act !== 'reject') return undefined
  return {
    fields: reasoned,
    onRow: false,
    run: async ({ admin, by, body }) => answerAct(await admin[act](by, { proposalId, reason: text(body['reason']) })),
  }
}

const filtered: Fields = {
  ...{ kind: 'text', operation: 'text', scope: 'scope', cause: 'text', owner: 'text' },
  olderThanMs: 'number',
}
const exported: Fields = {
  csv: 'text',
  match: { column: 'text', by: 'text' },
  status: { column: 'text', happened: 'texts', didNotHappen: 'texts' },
  ...{ reference: 'text', value: 'text' },
}
const planned: Fields = { ...reasoned, act: 'text', ids: 'texts', filter: filtered, file: exported }

function bulkRoute(bulkId: string | undefined, act: string | undefined): WriteRoute | undefined {
  if (bulkId === undefined)
    return {
      ...{ fields: planned, onRow: false },
      // Its shape is checked; what the texts say is for the service.
      run: async ({ admin, by, body }) => answerAct(await admin.planBulk(by, body as unknown as BulkGiven)),
    }
  if (act === 'cancel')
    return { fields: {}, onRow: false, run: async ({ admin, by }) => answerAct(await admin.cancelBulk(by, { bulkId })) }
  if (act !== 'start') return undefined
  return {
    ...{ fields: {}, onRow: false },
    // Who polls sees how far it is. A process that ends leaves the rest to the next start.
    run: async ({ admin, by, background }) =>
      answerAct(await admin.startBulk(by, { bulkId, inBackground: background })),
  }
}
