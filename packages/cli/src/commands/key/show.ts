import type { AdminKey, TimelineEntry } from 'latchkey/admin'
import { readKey } from '../../desk/act.ts'
import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import { plain } from '../../output/table.ts'
import type { CommandSpec } from '../../program/command.ts'
import type { Context } from '../../program/context.ts'
import { durationText } from '../../program/duration.ts'
import { exits } from '../../program/exit.ts'

export const keyShow: CommandSpec = {
  path: 'key show',
  summary: 'one row: its state, what is open, and what may be done with it',
  args: '<id>',
  options: [{ flags: '--timeline', summary: 'what happened to it, in order' }],
  run: ({ args: [id = ''], flags, context }) =>
    withDesk(context, async desk => {
      const key = await readKey(desk, id)
      const timeline = flags.has('timeline') ? found(await desk.timeline(id), `row ${id}`) : undefined
      const shown = timeline === undefined ? key : { ...key, timeline }
      context.out.value(shown, () => [
        ...keyLines(key, context),
        ...(timeline ?? []).map(entry => entryLine(entry, context)),
      ])
      return exits.done
    }),
}

function keyLines(key: AdminKey, { when }: Context): readonly string[] {
  const { openEffect, references, may, mayNot } = key
  const facts: readonly (readonly [string, string | number | undefined | null])[] = [
    ['id', key.id],
    ['operation', key.operation],
    ['scope', key.scope],
    ['what', key.description],
    ['state', `${key.state}${key.parked ? ', parked' : ''}`],
    ['version', key.version],
    ['cause', key.cause],
    ['created', when(key.createdAtMs)],
    [
      'completed',
      key.completedAtMs === undefined || key.completedAtMs === null
        ? undefined
        : `${when(key.completedAtMs)}${key.status ? `, with ${key.status}` : ''}`,
    ],
    ['expires', when(key.expiresAtMs)],
    ['attempts', key.crashes > 0 ? `${key.attempts}, ${key.crashes} of them died` : key.attempts],
    ['open effect', openEffect ? `${openEffect.name}, downstream key ${openEffect.downstreamKey}` : undefined],
    ['quarantine', key.quarantineLeftMs ? `${durationText(key.quarantineLeftMs)} left` : undefined],
    ['references', references.length === 0 ? undefined : references.map(({ text }) => text).join(', ')],
    ['owner', key.owner],
    ['note', key.note],
    ['you may', may.join(', ')],
    ...[...byReason(mayNot)].map(([why, rights]) => ['not', `${rights.join(', ')}: ${why}`] as const),
  ]
  return facts.flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [`${name.padEnd(12)} ${plain(String(value))}`],
  )
}

/** A reason that several rights share is said once. */
function byReason(mayNot: AdminKey['mayNot']): ReadonlyMap<string, readonly string[]> {
  const rights = new Map<string, readonly string[]>()
  for (const { right, why } of mayNot) rights.set(why, [...(rights.get(why) ?? []), right])
  return rights
}

function entryLine(entry: TimelineEntry, { when }: Context): string {
  const at = (entry.atMs === undefined || entry.atMs === null ? '' : when(entry.atMs)).padEnd(26)
  return `${at} ${plain(entryText(entry))}`
}

function entryText(entry: TimelineEntry): string {
  switch (entry.kind) {
    case 'step':
      return `${entry.step}    ${entry.name}  ${entry.state}, epoch ${entry.epoch}`
    case 'evidence':
      return `evidence  ${entry.source} says ${entry.verdict}${entry.effect ? ` about ${entry.effect}` : ''}${entry.applied ? ', and it moved the row' : ''}`
    case 'reference':
      return `reference ${entry.text}`
    case 'unknown':
      return `unknown   ${entry.cause}`
    case 'act':
      return `act       ${entry.act} by ${entry.by}: ${entry.reason}${entry.refused ? ` (refused: ${entry.refused})` : ''}`
    default:
      return entry.kind
  }
}
