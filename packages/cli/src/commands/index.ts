/** Every command, in the order of the help. */
import type { CommandSpec } from '../program/command.ts'
import { audit } from './audit.ts'
import { completion } from './completion.ts'
import { configShow } from './config/show.ts'
import { serveConsole } from './console.ts'
import { doctor } from './doctor.ts'
import { inboxParked } from './inbox/parked.ts'
import { inboxRedrive } from './inbox/redrive.ts'
import { init } from './init.ts'
import { keyFind } from './key/find.ts'
import { keyForget } from './key/forget.ts'
import { keyShow } from './key/show.ts'
import { migrate } from './migrate.ts'
import { migrateStatus } from './migrate/status.ts'
import { outboxLanes } from './outbox/lanes.ts'
import { outboxParked } from './outbox/parked.ts'
import { outboxRedrive } from './outbox/redrive.ts'
import { outboxSkip } from './outbox/skip.ts'
import { parkedList } from './parked/list.ts'
import { parkedNote } from './parked/note.ts'
import { parkedResume } from './parked/resume.ts'
import { proposalsApprove } from './proposals/approve.ts'
import { proposalsList } from './proposals/list.ts'
import { proposalsReject } from './proposals/reject.ts'
import { settle } from './settle.ts'
import { status } from './status.ts'
import { unknownList } from './unknown/list.ts'
import { unknownLookUp } from './unknown/look-up.ts'
import { work } from './work.ts'

export const commands: readonly CommandSpec[] = [
  status,
  ...[unknownList, unknownLookUp],
  settle,
  ...[keyFind, keyShow, keyForget],
  ...[parkedList, parkedResume, parkedNote],
  ...[outboxLanes, outboxParked, outboxRedrive, outboxSkip],
  ...[inboxParked, inboxRedrive],
  ...[proposalsList, proposalsApprove, proposalsReject],
  audit,
  ...[serveConsole, work],
  ...[init, migrate, migrateStatus, doctor, configShow, completion],
]

/** The words that stand before others, and what they are about. */
export const groups: Readonly<Record<string, string>> = {
  unknown: 'outcomes that are unknown',
  key: 'one row',
  parked: 'rows that were given up on',
  outbox: 'messages to deliver',
  inbox: 'messages that consumers gave up on',
  proposals: 'acts that wait for a second person',
  config: 'the settings of this program',
}
