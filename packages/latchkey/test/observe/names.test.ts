/** The metrics that alerts and dashboard ask for are those that the exporter registers, with the labels they have. */
import { readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { prometheusTelemetry } from 'latchkey/prometheus'
import { catalogue, duplicateLabel, prometheusName, scopeLabel } from '../../src/telemetry/catalogue.ts'
import { alertsOf } from './alerts.ts'

const observe = new URL('../../../../docs/observe/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, observe), 'utf8')
const alerts = read('alerts.yml')
const dashboard = read('dashboard.json')

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

/** Written by us, in the shape of Grafana. */
const { panels } = JSON.parse(dashboard) as { readonly panels: readonly Panel[] }
const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const))

async function registered(): Promise<Set<string>> {
  const register = new Registry()
  prometheusTelemetry({ registry: register })
  const metrics = await register.getMetricsAsJSON()
  const ofHistogram = ['_bucket', '_sum', '_count']
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === 'histogram' ? ofHistogram.map(suffix => `${name}${suffix}`) : [name],
    ),
  )
}

const named = (text: string) => text.match(/\bapi_idempotency_\w+/g) ?? []

/** By the name of the metric in Prometheus. */
const labels = new Map(
  Object.entries(catalogue).map(([metric, entry]) => {
    const own = [...(entry.byOperation ? ['operation'] : []), ...(entry.detail === undefined ? [] : [entry.detail])]
    return [prometheusName(entry), metric === 'duplicates.by_scope' ? [scopeLabel, duplicateLabel] : own] as const
  }),
)

function labelsOf(name: string): readonly string[] {
  const own = labels.get(name.replace(/_(?:bucket|sum|count)$/, '')) ?? labels.get(name) ?? []
  return [...own, 'job', 'instance', 'le']
}

describe.each([
  ['the alerts', alerts],
  ['the dashboard', dashboard],
])('%s', (_, text) => {
  it('ask only for metrics that are exported', async () => {
    const names = await registered()
    expect(named(text).length).toBeGreaterThan(10)
    expect(named(text).filter(name => !names.has(name))).toEqual([])
  })

  it('choose by labels that the metrics have', () => {
    for (const [, name = '', selector = ''] of text.matchAll(/\b(api_idempotency_\w+)\{([^}]*)\}/g)) {
      for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
        expect(labelsOf(name), `${name}{${selector}}`).toContain(label)
    }
  })
})

describe('the dashboard', () => {
  it('has a query in every panel', () => {
    expect(queries.length).toBeGreaterThanOrEqual(12)
    for (const [title, expr] of queries) expect(named(expr), title).not.toEqual([])
  })
})

describe('the page about them', () => {
  const page = read('README.md')

  it.each(alertsOf(alerts))('says what %s means and what to do', alert => {
    expect(page).toMatch(new RegExp(`^\\| \`${alert}\` \\| \\S.* \\| \\S.* \\|$`, 'm'))
  })

  it('explains no alert that does not exist', () => {
    const explained = [...page.matchAll(/^\| `(Latchkey\w+)` \|/gm)].map(([, name = '']) => name)
    expect(explained.toSorted()).toEqual(alertsOf(alerts).toSorted())
  })
})
