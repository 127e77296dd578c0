/** The request that every subject gets: the same bytes but for the key. */

export type Keys =
  /** Every key is new. The prefix tells runs apart. */
  | { readonly kind: 'new'; readonly prefix: string }
  /** Every key is one of `count` that were completed before, without locality: `prefix` and a number below `count`. */
  | { readonly kind: 'replayed'; readonly prefix: string; readonly count: number }
  /** `prefix` and 0, 1, 2 …: completes the keys that are replayed afterwards. */
  | { readonly kind: 'sequence'; readonly prefix: string }

export const replayedPrefix = 'replayed-'

export function replayedOf(count: number): Keys {
  return { kind: 'replayed', prefix: replayedPrefix, count }
}

const body = JSON.stringify({ sku: 'tea', quantity: 3, note: 'x'.repeat(130) })
const start = 'POST /orders HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n'
const tail = `\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** `tenant`: for a server whose scope is that header. */
export function requestWriter(keys: Keys, tenant?: string): (n: number) => string {
  const { prefix } = keys
  const head = `${start}${tenant === undefined ? '' : `x-tenant: ${tenant}\r\n`}idempotency-key: `
  switch (keys.kind) {
    case 'new':
      return n => `${head}${prefix}${scramble(n)}${tail}`
    case 'sequence':
      return n => `${head}${prefix}${n}${tail}`
    case 'replayed':
      return n => `${head}${prefix}${scattered(n) % keys.count}${tail}`
  }
}

/** Keys without locality: real ones are random. */
function scramble(n: number): string {
  return `${scattered(n).toString(36)}-${n}`
}

function scattered(n: number): number {
  return Math.imul(n + 1, 0x9e3779b1) >>> 0
}
