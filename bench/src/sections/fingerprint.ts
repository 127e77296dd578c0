/** The fingerprint: canonical hash of a JSON body. Each repetition is a process of its own. */
import type { FingerprintOrder, ShapeCost } from '../fingerprint/measure.ts'
import { askApart } from '../machine/child.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section } from '../section.ts'
import { type Figure, figure, median, pairwise } from '../statistics.ts'

interface Shape {
  readonly shape: string
  readonly bytes: number
  /** By repetition. */
  readonly parseUs: readonly number[]
  readonly fingerprintUs: readonly number[]
  /** Fingerprint over JSON.parse. */
  readonly ratios: readonly number[]
}

export const fingerprint: Section = {
  name: 'fingerprint',
  what: 'the fingerprint of a JSON body over JSON.parse of it, at 2 KB and at 256 KiB',
  async run({ repetitions, programs }) {
    const order: FingerprintOrder = { code: programs.fingerprintCode }
    const costs: ShapeCost[] = []
    for (let repetition = 0; repetition < repetitions; repetition++) {
      costs.push(...(await askApart<readonly ShapeCost[]>(programs.fingerprint, order)))
    }
    const shapes = shapesOf(costs)
    // As goals.json names them: the order at both sizes, as clients send it (not sorted, no white space).
    const figures = Object.fromEntries(['2 KB', '256 KiB'].map(size => [`${size} over JSON.parse`, goal(size, shapes)]))
    return { markdown: markdownOf(shapes), figures, faults: [], data: { shapes } }
  },
}

function shapesOf(costs: readonly ShapeCost[]): Shape[] {
  return [...new Set(costs.map(({ shape }) => shape))].map(shape => {
    const own = costs.filter(cost => cost.shape === shape)
    const [parseUs, fingerprintUs] = [own.map(cost => cost.parseUs), own.map(cost => cost.fingerprintUs)]
    return { shape, bytes: own[0]?.bytes ?? 0, parseUs, fingerprintUs, ratios: pairwise(fingerprintUs, parseUs) }
  })
}

function goal(size: string, shapes: readonly Shape[]): Figure {
  const ratios = shapes.find(({ shape }) => shape === `${size} order`)?.ratios ?? []
  return figure(ratios, '×', `fingerprint of a ${size} body over JSON.parse of it`)
}

function markdownOf(shapes: readonly Shape[]): string {
  const rows = shapes.map(({ shape, bytes, parseUs, fingerprintUs, ratios }) => [
    shape,
    String(bytes),
    median(parseUs).toFixed(1),
    median(fingerprintUs).toFixed(1),
    withSpread(ratios, 2),
  ])
  const head = ['body', 'bytes', 'JSON.parse µs', 'fingerprint µs', 'ratio (min to max)']
  return ['### Fingerprint of a JSON body', markdownTable(head, rows)].join('\n\n')
}
