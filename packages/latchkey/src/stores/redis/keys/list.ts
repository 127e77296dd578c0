/**
 * Pages of rows, bucket by bucket. Unknown, parked and pending rows are few, and come in the order of their ids. All others come by expiry, which a grant
 * writes and hardly anything moves later: a page continues where the last one ended, whatever happened in between.
 */
import type { KeyRecord, Listing, Page } from '../../../ports/store.ts'
import { pageSize } from '../../shared/listing.ts'
import { buckets, type Index } from '../connection/layout.ts'
import type { Link } from '../connection/link.ts'
import { listOf } from '../connection/reply.ts'
import type { Script } from '../connection/script.ts'
import { type DueRow, dueRow } from './due.ts'
import { uuidBytes } from './packed-row.ts'
import { readFacts } from './row.ts'

/** Read from a bucket at once. */
const rowsMax = 128
/** Asked at once: an empty store is listed in eight round trips. */
const bucketsAtOnce = 32
/** After this many rows that do not fit, a page is returned as it is, and the next one continues: no call takes long. */
const examinedMax = 5_000

/** Those after the given one. Rows of the same millisecond are in the order of their ids. */
const byExpiryScript: Script = {
  flags: 'no-writes',
  parts: ['expiries'],
  args: ['score', 'after', 'limit'],
  body: `
local page, offset = {}, 0
repeat
  local part = redis.call('ZRANGEBYSCORE', expiries, score, '+inf', 'WITHSCORES', 'LIMIT', offset, limit)
  for at = 1, #part, 2 do
    if #page < limit * 2 and (part[at + 1] ~= score or part[at] > after) then
      page[#page + 1] = part[at]
      page[#page + 1] = part[at + 1]
    end
  end
  offset = offset + limit
until #part < limit * 2 or #page >= limit * 2
return page`,
}

function byIdScript(index: Index): Script {
  return {
    flags: 'no-writes',
    parts: [index],
    args: ['score', 'after', 'limit'],
    body: `
local found, page = {}, {}
for _, member in ipairs(redis.call('ZRANGE', ${index}, 0, -1)) do
  if member:sub(1, 16) > after then found[#found + 1] = member end
end
table.sort(found)
for at = 1, math.min(#found, limit) do
  page[#page + 1] = found[at]
  page[#page + 1] = '0'
end
return page`,
  }
}

const scripts = {
  unknowns: byIdScript('unknowns'),
  parked: byIdScript('parked'),
  queue: byIdScript('queue'),
  expiries: byExpiryScript,
} as const

/** The smallest index that has all the rows asked for. */
function indexFor({ state, parked }: Listing): keyof typeof scripts {
  if (parked === true) return 'parked'
  if (state === 'unknown') return 'unknowns'
  return state === 'pending' ? 'queue' : 'expiries'
}

interface Place {
  readonly atMs: number | '-inf'
  readonly id: string | undefined
}

const beginning: Place = { atMs: '-inf', id: undefined }

export async function list(link: Link, listing: Listing): Promise<Page> {
  const size = pageSize(listing.limit)
  const records: KeyRecord[] = []
  const places: string[] = []
  let examined = 0
  let last: string | undefined
  for await (const row of rowsFrom(link, listing)) {
    if (examined >= examinedMax) return { records, next: last }
    examined += 1
    last = placeText(row)
    const record = await row.record
    if (record === undefined || !fits(record, listing)) continue
    records.push(record)
    places.push(last)
    if (records.length > size) return { records: records.slice(0, size), next: places[size - 1] }
  }
  return { records, next: undefined }
}

interface ListedRow extends DueRow {
  readonly record: Promise<KeyRecord | undefined>
}

/** All rows after the place where the last page ended. */
async function* rowsFrom(link: Link, listing: Listing): AsyncGenerator<ListedRow> {
  const from = placeFrom(listing.after)
  const first = from.id === undefined ? 0 : buckets.indexOf(from.id.slice(0, 2))
  const rest = buckets.slice(Math.max(0, first))
  for (let at = 0; at < rest.length; at += bucketsAtOnce) {
    const some = rest.slice(at, at + bucketsAtOnce)
    const pages = await Promise.all(
      some.map((bucket, n) => pageOf(link, listing, { bucket, from: at + n === 0 ? from : beginning })),
    )
    for (const [n, page] of pages.entries()) yield* bucketFrom(link, listing, { bucket: some[n] ?? '', page })
  }
}

async function* bucketFrom(
  link: Link,
  listing: Listing,
  { bucket, page }: { bucket: string; page: readonly DueRow[] },
): AsyncGenerator<ListedRow> {
  let current = page
  while (current.length > 0) {
    const rows = current.map(row => ({ ...row, record: readFacts(link, row.id) }))
    await Promise.all(rows.map(row => row.record))
    yield* rows
    const last = current.at(-1)
    if (current.length < rowsMax || last === undefined) return
    current = await pageOf(link, listing, { bucket, from: last })
  }
}

async function pageOf(
  link: Link,
  listing: Listing,
  { bucket, from }: { bucket: string; from: Place },
): Promise<readonly DueRow[]> {
  const after = from.id === undefined ? '' : uuidBytes(from.id)
  const reply = await link.runAt(scripts[indexFor(listing)], bucket, [String(from.atMs), after, String(rowsMax)])
  const flat = listOf(reply)
  return flat.flatMap((member, at) => (at % 2 === 0 ? [dueRow(member, flat[at + 1])] : []))
}

function fits(record: KeyRecord, { state, parked, operation, scope }: Listing): boolean {
  return (
    (state === undefined || record.state === state) &&
    (parked === undefined || record.parked) &&
    (operation === undefined || record.operation === operation) &&
    (scope === undefined || record.scope === scope)
  )
}

/** In the order of ids, the id alone. */
function placeText({ atMs, id }: DueRow): string {
  return atMs === 0 ? id : `${id} ${atMs}`
}

function placeFrom(after: string | undefined): Place {
  if (after === undefined) return beginning
  const [id, atMs = 0] = after.split(' ')
  return { id, atMs: Number(atMs) }
}
