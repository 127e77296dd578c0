/** The report printed at the end. */
import type { Report } from './check/check.ts'

const shownMax = 20

export function reportLines({ verdict, counts, hardCases, faults, violations }: Report): string {
  const missing = Object.entries(hardCases).filter(([, times]) => times === 0)
  return [
    section('counted', counts),
    section('faults', faults),
    section('hard cases met', hardCases),
    ...violations.slice(0, shownMax).map(({ kind, key, detail }) => `${kind}: ${key}: ${detail}`),
    violations.length > shownMax ? `… and ${violations.length - shownMax} more\n` : '',
    verdict === 'inconclusive' ? `hard cases not met: ${missing.map(([name]) => name).join(', ')}` : '',
    verdict.toUpperCase(),
  ]
    .filter(line => line !== '')
    .join('\n')
}

function section(title: string, values: Readonly<Record<string, number>>): string {
  const lines = Object.entries(values).map(([name, value]) => `  ${name.padEnd(32)} ${String(value).padStart(7)}`)
  return [title, ...lines, ''].join('\n')
}

/** 0 passed, 1 failed, 3 inconclusive. */
export const exitCodes = { passed: 0, failed: 1, inconclusive: 3 } as const
