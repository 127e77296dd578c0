/** The fingerprint: canonical hash of a JSON body. */
import { type FingerprintResult, measureFingerprint } from '../fingerprint.ts'
import { markdownTable, withSpread } from '../report/table.ts'
import type { Section } from '../section.ts'

export const fingerprint: Section = {
  name: 'fingerprint',
  what: 'the fingerprint of a JSON body over JSON.parse of it, at 2 KB and at 256 KiB',
  async run({ repetitions }) {
    const data = await measureFingerprint({ repetitions })
    return { markdown: markdownOf(data), figures: data.figures, faults: [], data }
  },
}

function markdownOf({ shapes }: FingerprintResult): string {
  const rows = shapes.map(({ shape, bytes, parseUs, fingerprintUs, ratios }) => [
    shape,
    String(bytes),
    parseUs.toFixed(1),
    fingerprintUs.toFixed(1),
    withSpread(ratios, 2),
  ])
  const head = ['body', 'bytes', 'JSON.parse µs', 'fingerprint µs', 'ratio (min to max)']
  return ['### Fingerprint of a JSON body', markdownTable(head, rows)].join('\n\n')
}
