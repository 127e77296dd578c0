/** The declared operations as a page for the clients of an API. */
import { type Documented, mayBeAccepted, ownAnswers } from './answers.ts'
import { keyOf } from './key.ts'

export function markdownOf(operations: readonly Documented[]): string {
  return `${operations.map(section).join('\n\n')}\n`
}

function section(operation: Documented): string {
  const facts = [keyLine(operation), storedLine(operation), ...duplicateLine(operation), ...deferredLine(operation)]
  return [`## ${operation.name}`, facts.map(line => `- ${line}`).join('\n'), answersTable(operation)].join('\n\n')
}

function keyLine(operation: Documented): string {
  const key = keyOf(operation)
  const { methods } = operation.settings
  const where = key.in === 'header' ? `the header \`${key.name}\`` : 'the key in the request'
  const how = key.required
    ? `Every ${methods.join(' and ')} needs ${where}.`
    : `${methods.join(' and ')} may have ${where}.`
  return `${how} ${key.text} Send the same key with the same request when you retry, and a new one with each new request.`
}

function storedLine({ settings }: Documented): string {
  const { retentionMs, onExpiry, tombstoneMs } = settings
  const after =
    onExpiry === 'gone'
      ? `For another ${duration(tombstoneMs)} the key is refused with 410.`
      : 'After that the same key is a new request.'
  return `The answer is stored for ${duration(retentionMs)}, and every retry gets it, with \`Idempotent-Replayed: true\`. ${after}`
}

function duplicateLine({ kind, settings: { onInProgress, waitMs } }: Documented): string[] {
  if (kind === 'deferred') return []
  if (onInProgress === 'wait')
    return [
      `A retry while the first request runs waits for its answer, for at most ${duration(waitMs)}; then it gets 409.`,
    ]
  return [
    `A retry while the first request runs gets ${onInProgress === 'accept' ? '202' : '409'} with \`Retry-After\`.`,
  ]
}

function deferredLine(operation: Documented): string[] {
  const { kind, deadlineMs } = operation
  if (deadlineMs === undefined || !mayBeAccepted(operation)) return []
  const asked = kind === 'deferred' ? 'The request' : 'A request with `Prefer: respond-async`'
  return [
    `${asked} is answered 202 with \`Location\` as soon as it is accepted. Work that has not begun within ${duration(deadlineMs)} ends with 408.`,
  ]
}

function answersTable(operation: Documented): string {
  const rows = ownAnswers(operation).map(
    ({ status, code, detail, retry }) =>
      `| ${status} | \`${code}\` | ${detail} | ${retry === 'later' ? 'yes, with the same key' : 'no'} |`,
  )
  return ['| status | code | what happened | does a retry help? |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
  ['millisecond', 1],
] as const

/** In the largest unit of which it is a whole number. A day is said as hours up to two of them, as is usual for retentions. */
function duration(ms: number): string {
  const [name, size] = units.find(([, unit]) => ms % unit === 0 && (unit < 86_400_000 || ms > 2 * unit)) ?? [
    'millisecond',
    1,
  ]
  const count = ms / size
  return `${count} ${name}${count === 1 ? '' : 's'}`
}
