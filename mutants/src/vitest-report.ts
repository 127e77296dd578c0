/** What vitest's JSON report says about named tests. */
import type { NamedTest } from './mutant.ts'

export interface VitestReport {
  readonly testResults: readonly {
    /** Absolute. */
    readonly name: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages?: readonly string[] | null
    }[]
  }[]
}

/**
 * `failed`: an assertion failed. `broken`: something else failed, such as a statement that the server cannot parse.
 * `absent`: no test of this name ran.
 */
export type Verdict =
  | { readonly kind: 'passed' | 'failed' | 'absent' }
  | { readonly kind: 'broken'; readonly message: string }

/** The errors of vitest's matchers, of those it took from jest, of `rejects`, and of node:assert. */
const assertion = /^(?:AssertionError|Error: expect\(|Error: promise resolved )/

export function verdictOn({ path, test }: NamedTest, report: VitestReport): Verdict {
  const found = report.testResults
    .filter(({ name }) => name.replaceAll('\\', '/').endsWith(`/${path}`))
    .flatMap(file => file.assertionResults)
    .filter(({ fullName, status }) => fullName.includes(test) && (status === 'passed' || status === 'failed'))
  if (found.length === 0) return { kind: 'absent' }
  const failures = found.filter(({ status }) => status === 'failed')
  if (failures.length === 0) return { kind: 'passed' }
  const messages = failures.flatMap(({ failureMessages }) => failureMessages ?? [])
  if (messages.some(message => assertion.test(message))) return { kind: 'failed' }
  return { kind: 'broken', message: messages[0]?.split('\n')[0] ?? 'without a message' }
}

export function describeVerdict(verdict: Verdict, { path, test }: NamedTest): string {
  const why = verdict.kind === 'broken' ? `broken, without a failed assertion: ${verdict.message}` : verdict.kind
  return `${test} (${path}): ${why}`
}
