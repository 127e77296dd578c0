import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'
import { withStore } from '../../stores/open.ts'
import { tablesOf } from '../../stores/opened.ts'

export const migrateStatus: CommandSpec = {
  path: 'migrate status',
  summary: 'the steps that the tables have; exits with 1 if some are missing',
  run({ context }) {
    const { out, when } = context
    return withStore(context, async opened => {
      const tables = tablesOf(opened)
      const applied = await tables.applied()
      const versions = new Set([...tables.steps, ...applied].map(({ version }) => version))
      const rows = [...versions]
        .toSorted((a, b) => a - b)
        .map(version => {
          const known = tables.steps.find(step => step.version === version)
          const done = applied.find(step => step.version === version)
          return {
            version,
            name: done?.name ?? known?.name ?? '',
            appliedAtMs: done?.appliedAtMs,
            known: known !== undefined,
          }
        })
      out.rows(rows, [
        { title: 'step', text: ({ version }) => version },
        { title: 'name', text: ({ name }) => name },
        {
          title: 'applied',
          text: ({ appliedAtMs, known }) =>
            known
              ? appliedAtMs === undefined
                ? 'missing'
                : when(appliedAtMs)
              : `${when(appliedAtMs)}, by a newer release`,
        },
      ])
      const missing = rows.filter(({ appliedAtMs }) => appliedAtMs === undefined)
      out.talk(
        missing.length === 0 ? 'nothing is missing' : `${missing.length} steps are missing: run latchkey migrate`,
      )
      return missing.length === 0 ? exits.done : exits.no
    })
  },
}
