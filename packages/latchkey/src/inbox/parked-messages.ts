/** What an operator does with messages that consumers have parked. Every act carries a name and a reason, which are stored. */
import { engine } from '../engine/internal.ts'
import { checkAct } from '../engine/operator.ts'
import { isRowId } from '../engine/request.ts'
import type { InboxHost } from '../engine/store/inbox.ts'
import { checkOptions, type ChecksOf } from '../ports/check-options.ts'
import { misconfigured } from '../ports/errors.ts'
import type {
  DiscardResult,
  InboxInspection,
  ParkedCause,
  ParkedInboxListing,
  ParkedInboxPage,
  RedriveResult,
} from '../ports/faculties/inbox.ts'
import { oneOf, text, wholeUpTo } from '../ports/option-kinds.ts'
import type { Act } from '../ports/store.ts'

export interface ParkedListOptions {
  readonly consumer?: string
  readonly cause?: ParkedCause
  /** Default 100, at most 1,000. */
  readonly limit?: number
  /** The `next` of the page before. */
  readonly after?: string
}

export interface RedriveOptions {
  /** The id to run it under, for a message that came without one, or with one that another message had. Default: its own. */
  readonly as?: string
}

export interface ParkedMessages {
  /** In the order in which they were first parked, a page at a time, without headers and payload. */
  list(filter?: ParkedListOptions): Promise<ParkedInboxPage>
  /** One message with its headers and its payload, and what operators did with it; that also after it is gone. */
  inspect(id: string): Promise<InboxInspection>
  /** Marks it: the next `redriven` of its consumer runs it. Its attempts begin anew. */
  redrive(id: string, act: Act, options?: RedriveOptions): Promise<RedriveResult>
  /** Deletes it, unless a consumer is running it now. */
  discard(id: string, act: Act): Promise<DiscardResult>
}

const pageDefault = 100
const pageMax = 1_000

const listChecks: ChecksOf<ParkedListOptions> = {
  consumer: text,
  cause: oneOf('missing-key', 'mismatch', 'attempts', 'unknown', 'row-parked', 'input-refused'),
  limit: wholeUpTo(pageMax),
  after: text,
}
const redriveChecks: ChecksOf<RedriveOptions> = {
  as: {
    wants: 'a text without U+0000 and half surrogate pairs',
    fits: value => typeof value === 'string' && /^[^\0\p{Surrogate}]+$/u.test(value),
  },
}

/** `latchkey`: the one whose store the consumers use. It needs to declare none of their operations. */
export function parkedMessages(latchkey: { readonly [engine]: { readonly inbox: InboxHost } }): ParkedMessages {
  const host = latchkey[engine].inbox
  host.require('parkedMessages')
  return {
    async list(filter = {}) {
      checkOptions('parkedMessages: list', filter, listChecks)
      const listing: ParkedInboxListing = { ...filter, limit: filter.limit ?? pageDefault }
      return host.call(parked => parked.list(listing))
    },
    inspect: async id => host.call(parked => parked.inspect(checkedId(id))),
    async redrive(id, act, options = {}) {
      checkAct('redrive', act)
      checkOptions('parkedMessages: redrive', options, redriveChecks)
      checkedId(id)
      return host.call(parked => parked.redrive(id, act, options.as))
    },
    async discard(id, act) {
      checkAct('discard', act)
      checkedId(id)
      return host.call(parked => parked.discard(id, act))
    },
  }
}

/** A store would report another text as a failure of its own. */
function checkedId(id: string): string {
  if (typeof id === 'string' && isRowId(id)) return id
  throw misconfigured('a parked message is named by the id of list() or of a log line (got another text)')
}
