/** The declared operations as parts of an OpenAPI 3.1 document. */
import {
  idempotencyKeyExpiresAt,
  idempotencyStored,
  idempotentReplayed,
  latchkeyRetry,
  retryAfterMilliseconds,
} from '../wire/headers.ts'
import { type Documented, mayBeAccepted, type OwnAnswer, ownAnswers } from './answers.ts'
import { keyOf, type KeyDescription } from './key.ts'

export interface OpenApiFragment {
  /** By the name of the operation: merge each into the operation object of its path. */
  readonly operations: Readonly<Record<string, OperationFragment>>
  readonly components: {
    readonly parameters: Readonly<Record<string, object>>
    readonly headers: Readonly<Record<string, object>>
    readonly schemas: Readonly<Record<string, object>>
  }
}

export interface OperationFragment {
  /** Empty where a function reads the key: then your own schema describes where it is. */
  readonly parameters: readonly { readonly $ref: string }[]
  /** By status. Where your own answers have the same status, describe both. */
  readonly responses: Readonly<Record<string, object>>
  readonly 'x-latchkey': OperationFacts
}

/** For programs: what the texts say. */
export interface OperationFacts {
  readonly kind: Documented['kind']
  readonly key: KeyDescription
  readonly methods: readonly string[]
  readonly retentionSeconds: number
  /** For how long a used key is refused after its answer's retention. */
  readonly tombstoneSeconds?: number
  readonly onInProgress: 'refuse' | 'wait' | 'accept'
  readonly bodyBytesMax: number
  readonly deadlineSeconds?: number
}

export function fragmentOf(operations: readonly Documented[]): OpenApiFragment {
  const parameters: Record<string, object> = {}
  for (const operation of operations) {
    const key = keyOf(operation)
    if (key.in === 'header') parameters[parameterName(operation)] = keyParameter(operation, key)
  }
  return {
    operations: Object.fromEntries(operations.map(operation => [operation.name, operationFragment(operation)])),
    components: { parameters, headers, schemas: { LatchkeyProblem: problemSchema(operations[0]) } },
  }
}

/** Names of components take letters, digits, '.', '-' and '_'; those of operations ':' as well. */
function parameterName({ name }: Documented): string {
  return `IdempotencyKey.${name.replaceAll(':', '_')}`
}

function keyParameter(
  operation: Documented,
  { name, required, text }: Extract<KeyDescription, { in: 'header' }>,
): object {
  return {
    name,
    in: 'header',
    required,
    description: `${text} Send the same key with the same request when you retry, and a new one with each new request.`,
    schema: { type: 'string' },
    examples: { quoted: { value: '"8e03978e-40d5-43e8-bc93-6894a57f9324"', summary: operation.name } },
  }
}

function operationFragment(operation: Documented): OperationFragment {
  const { kind, settings, deadlineMs } = operation
  const { methods, retentionMs, onExpiry, tombstoneMs, onInProgress, bodyBytesMax } = settings
  const key = keyOf(operation)
  return {
    parameters: key.in === 'header' ? [{ $ref: `#/components/parameters/${parameterName(operation)}` }] : [],
    responses: responsesOf(operation),
    'x-latchkey': {
      kind,
      key,
      methods,
      retentionSeconds: retentionMs / 1_000,
      ...(onExpiry === 'gone' ? { tombstoneSeconds: tombstoneMs / 1_000 } : {}),
      onInProgress,
      bodyBytesMax,
      ...(deadlineMs === undefined ? {} : { deadlineSeconds: deadlineMs / 1_000 }),
    },
  }
}

function responsesOf(operation: Documented): Record<string, object> {
  const problems = [...byStatus(ownAnswers(operation))].map(([status, answers]) => [
    String(status),
    problemResponse(operation, answers),
  ])
  return {
    ...(mayBeAccepted(operation) ? { '202': acceptedResponse } : {}),
    ...Object.fromEntries(problems),
  }
}

function byStatus(answers: readonly OwnAnswer[]): ReadonlyMap<number, readonly OwnAnswer[]> {
  const found = new Map<number, OwnAnswer[]>()
  for (const answer of answers) found.set(answer.status, [...(found.get(answer.status) ?? []), answer])
  return found
}

const header = (name: string) => ({ $ref: `#/components/headers/${name}` })

const acceptedResponse = {
  description:
    'Accepted, and not finished. Ask the status resource at `Location`, or send the same request again, after `Retry-After`.',
  headers: {
    Location: { description: 'The status of the work.', schema: { type: 'string', format: 'uri-reference' } },
    'Retry-After': header('RetryAfter'),
    [latchkeyRetry]: header('LatchkeyRetry'),
  },
}

function problemResponse({ http }: Documented, answers: readonly OwnAnswer[]): object {
  const isStripe = http.profile === 'stripe'
  const types = [...new Set(answers.map(({ type }) => type))]
  const narrowed = isStripe ? {} : { properties: { type: { enum: types } } }
  return {
    description: [...new Set(answers.map(({ code, detail }) => `\`${code}\`: ${detail}`))].join('\n\n'),
    headers: {
      [latchkeyRetry]: header('LatchkeyRetry'),
      ...(answers.some(({ hasRetryAfter }) => hasRetryAfter)
        ? { 'Retry-After': header('RetryAfter'), [retryAfterMilliseconds]: header('RetryAfterMs') }
        : {}),
    },
    content: {
      [isStripe ? 'application/json' : 'application/problem+json']: {
        schema: { allOf: [{ $ref: '#/components/schemas/LatchkeyProblem' }, narrowed] },
      },
    },
  }
}

/** `Idempotent-Replayed`, `Idempotency-Stored` and the expiry come with answers of the application. */
const headers: Readonly<Record<string, object>> = {
  RetryAfter: {
    description: 'Whole seconds to wait before the same request is sent again.',
    schema: { type: 'integer', minimum: 1 },
  },
  RetryAfterMs: { description: 'The same in milliseconds.', schema: { type: 'integer', minimum: 1000 } },
  LatchkeyRetry: {
    description: 'Whether sending the same request with the same key again can help.',
    schema: { enum: ['later', 'no'] },
  },
  IdempotentReplayed: {
    description: `\`${idempotentReplayed}: true\` on an answer that was stored by an earlier request with this key.`,
    schema: { enum: ['true'] },
  },
  IdempotencyStored: {
    description: `\`${idempotencyStored}: false\` on an answer that was not stored: a retry may run again.`,
    schema: { enum: ['false'] },
  },
  IdempotencyKeyExpiresAt: {
    description: `\`${idempotencyKeyExpiresAt}\`: until when the answer is stored, as an HTTP date.`,
    schema: { type: 'string' },
  },
}

/** With `renderProblem` the body is the application's own: replace this schema then. */
function problemSchema(operation: Documented | undefined): object {
  const text = { type: 'string' }
  if (operation?.http.profile === 'stripe') {
    const error = {
      type: 'object',
      required: ['type', 'message'],
      properties: { type: text, code: text, message: text },
    }
    return { type: 'object', required: ['error'], properties: { error } }
  }
  return {
    type: 'object',
    description: 'A problem (RFC 9457).',
    required: ['type', 'title', 'status', 'detail'],
    properties: { type: { type: 'string', format: 'uri' }, title: text, status: { type: 'integer' }, detail: text },
  }
}
