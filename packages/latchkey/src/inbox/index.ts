/** Messages that count once: for consumers, and for anything else that hands over a message with an id. */
export {
  type DefinedInbox,
  type DefinedInboxOptions,
  inbox,
  type Inbox,
  type InboxOptions,
  type ReceiveOptions,
  type RedrivenOptions,
} from './inbox.ts'
export type { InboxHandler } from './delivery.ts'
export type { InboxMessage } from './message.ts'
export { parkedMessages, type ParkedListOptions, type ParkedMessages, type RedriveOptions } from './parked-messages.ts'
export type { Redriven } from './redrive.ts'
export type { InboxResult, RetryCause } from './result.ts'
export type {
  DiscardResult,
  InboxAct,
  InboxInspection,
  InboxRedrive,
  ListedInboxMessage,
  ParkedCause,
  ParkedInboxMessage,
  ParkedInboxPage,
  RedriveResult,
} from '../ports/faculties/inbox.ts'
