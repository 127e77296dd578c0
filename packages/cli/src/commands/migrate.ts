import type { CommandSpec } from '../program/command.ts'
import { exits } from '../program/exit.ts'
import { withStore } from '../stores/open.ts'
import { tablesOf } from '../stores/opened.ts'

export const migrate: CommandSpec = {
  path: 'migrate',
  summary: "creates or updates Latchkey's tables; safe beside other processes that do the same",
  options: [{ flags: '--to <step>', summary: 'the last step to apply (default: the newest)' }],
  run({ flags, context }) {
    const { out } = context
    const isDryRun = flags.has('dry-run')
    return withStore(
      context,
      async opened => {
        const tables = tablesOf(opened)
        const to = flags.count('to')
        const before = Math.max(0, ...(await tables.applied()).map(({ version }) => version))
        const missing = tables.steps.filter(({ version }) => version > before && version <= (to ?? Infinity))
        if (!isDryRun && missing.length > 0) await tables.migrate(to === undefined ? {} : { to })
        const steps = missing.map(({ version, name, sql }) => (isDryRun ? { version, name, sql } : { version, name }))
        out.value({ applied: !isDryRun, steps }, () =>
          missing.map(({ version, name, sql }) =>
            isDryRun ? `-- step ${version}: ${name}\n${sql}` : `${version}  ${name}`,
          ),
        )
        out.talk(
          missing.length === 0
            ? `nothing to do: ${opened.address} has step ${before}`
            : `${missing.length} steps ${isDryRun ? 'would be' : 'were'} applied to ${opened.address}`,
        )
        return exits.done
      },
      { create: true },
    )
  },
}
