/** The alerts of docs/observe, as Prometheus reads them: `promtool` checks their syntax and plays the cases beside this file. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { describeWith } from '../../../../test/servers/describe-postgres.ts'
import { findPromtool } from '../../../../test/servers/promtool.ts'
import { alertsOf } from './alerts.ts'

const found = findPromtool()

describeWith('the alerts', found.kind === 'missing' ? found.why : undefined, () => {
  const rules = fileURLToPath(new URL('../../../../docs/observe/alerts.yml', import.meta.url))
  const cases = fileURLToPath(new URL('./alerts.cases.yml', import.meta.url))
  /** Throws with what it printed, if it does not succeed. */
  const promtool = (...args: string[]) =>
    execFileSync(found.kind === 'found' ? found.promtool : '', args, { encoding: 'utf8', stdio: 'pipe' })

  it('are rules that Prometheus accepts', () => {
    expect(promtool('check', 'rules', rules)).toContain('SUCCESS')
  })

  it('fire when they should, and are quiet on an ordinary day', () => {
    expect(promtool('test', 'rules', cases)).toContain('SUCCESS')
  })

  it('each have a case in which they fire and one in which they do not', () => {
    const text = readFileSync(cases, 'utf8')
    for (const alert of alertsOf(readFileSync(rules, 'utf8'))) {
      expect(text, alert).toMatch(new RegExp(`alertname: ${alert}, exp_alerts: \\[\\]`))
      expect(text, alert).toMatch(new RegExp(`alertname: ${alert}\\n\\s+exp_alerts:\\n\\s+- exp_labels`))
    }
  })
})
