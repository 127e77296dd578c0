/** What the fingerprint of a JSON body costs, and JSON.parse of the same body. */
import { median } from '../statistics.ts'

export interface ShapeCost {
  readonly shape: string
  readonly bytes: number
  readonly parseUs: number
  readonly fingerprintUs: number
}

/** So many slices of either kind in turn: what disturbs one disturbs its partner. */
const slices = 30
const sliceBytes = 200_000
/** The first rounds of slices compile, and do not count. */
const compiling = 2

export interface FingerprintOrder {
  /** The library's own file, bundled: no public subpath computes a fingerprint alone. */
  readonly code: string
}

/** What that file exports, in the one shape that is called here. */
export type FingerprintRequest = (request: object) => Uint8Array

export function measureFingerprint(fingerprintRequest: FingerprintRequest): ShapeCost[] {
  return shapes().map(shape => measureShape(shape, fingerprintRequest))
}

const parts = { method: 'POST', path: '/orders', query: '', mediaType: 'application/json', header: () => undefined }

interface Shape {
  readonly shape: string
  readonly text: string
}

function measureShape({ shape, text }: Shape, fingerprintRequest: FingerprintRequest): ShapeCost {
  const body = Buffer.from(text)
  const rounds = Math.max(1, Math.round(sliceBytes / body.length))
  const timed = () =>
    interleaved(
      rounds,
      () => JSON.parse(text),
      () => fingerprintRequest({ ...parts, body }),
    )
  for (let round = 0; round < compiling; round++) timed()
  const [parseUs, fingerprintUs] = timed()
  return { shape, bytes: body.length, parseUs, fingerprintUs }
}

/** The faster half of the slices: a slice during which somebody else had the processor says nothing about the code. */
function interleaved(rounds: number, ...runs: readonly [() => unknown, () => unknown]): [number, number] {
  const spent: [number[], number[]] = [[], []]
  for (let slice = 0; slice < slices; slice++) {
    spent[0].push(timeUs(rounds, runs[0]))
    spent[1].push(timeUs(rounds, runs[1]))
  }
  const faster = (values: number[]) => median(values.toSorted((a, b) => a - b).slice(0, slices / 2))
  return [faster(spent[0]), faster(spent[1])]
}

function timeUs(rounds: number, run: () => unknown): number {
  const startedAt = performance.now()
  for (let round = 0; round < rounds; round++) run()
  return ((performance.now() - startedAt) * 1_000) / rounds
}

const sizes = [
  { name: '2 KB', bytes: 2_000 },
  // The largest that is read as JSON; above it the raw bytes are hashed.
  { name: '256 KiB', bytes: 256 * 1_024 },
]

function shapes(): Shape[] {
  return sizes.flatMap(({ name, bytes }) => [
    { shape: `${name} order`, text: largest(bytes, items => JSON.stringify(order(items))) },
    { shape: `${name} order, names sorted`, text: largest(bytes, items => JSON.stringify(sorted(order(items)))) },
    { shape: `${name} order, indented`, text: largest(bytes, items => JSON.stringify(order(items), null, 2)) },
    { shape: `${name} of numbers`, text: largest(bytes, points => JSON.stringify(track(points))) },
    { shape: `${name} of text`, text: largest(bytes, lines => JSON.stringify({ title: 'Tea', text: prose(lines) })) },
  ])
}

/** The longest text of at most so many bytes, by doubling and halving the steps. */
function largest(bytesMax: number, make: (count: number) => string): string {
  const fits = (count: number) => Buffer.byteLength(make(count)) <= bytesMax
  let count = 0
  let step = 1
  while (fits(step * 2)) step *= 2
  for (; step >= 1; step >>= 1) if (fits(count + step)) count += step
  return make(count)
}

const address = {
  name: 'Ada Byron',
  line1: '12 St James Square',
  city: 'London',
  postalCode: 'SW1Y 4LE',
  country: 'GB',
}

function order(items: number): object {
  return {
    reference: 'web-20260101-0001',
    customer: { id: 'cus_9f8e7d6c5b4a', email: 'ada@example.test', locale: 'en-GB', marketing: false },
    shipping: address,
    billing: address,
    items: Array.from({ length: items }, (_, i) => ({
      sku: `SKU-${1_000 + i}`,
      name: `Earl Grey loose leaf tea, ${i} g tin`,
      quantity: (i % 9) + 1,
      unitPrice: { currency: 'EUR', amount: 1_299 + i },
      taxRate: 0.19,
      giftWrapped: i % 3 === 0,
      notes: null,
      tags: ['tea', 'black', `batch-${i}`],
    })),
    currency: 'EUR',
    total: 123_456,
    createdAt: '2026-01-01T12:00:00Z',
  }
}

function track(points: number): object {
  return { points: Array.from({ length: points }, (_, i) => [i, i * 1.25, -i]) }
}

function prose(lines: number): string {
  return 'Dear Sir or Madam, the tea was cold and the post was late.\n'.repeat(lines)
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]))
}
