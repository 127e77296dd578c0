import { masked } from '../../config/secrets.ts'
import { flagOf, settingNames } from '../../config/settings.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'

export const configShow: CommandSpec = {
  path: 'config show',
  summary: 'the settings of this call; secrets are masked',
  options: [{ flags: '--origin', summary: 'where each comes from' }],
  async run({ flags, context: { settings, env, out } }) {
    const rows = [
      ...settingNames.map(name => {
        const { value, origin } = settings.of[name]
        return { name: flagOf(name), value: value === undefined ? undefined : masked(value), origin }
      }),
      addressRow(settings.of.store.value ?? '', env),
      {
        name: 'token',
        value: env['LATCHKEY_TOKEN'] ? '***' : undefined,
        origin: env['LATCHKEY_TOKEN'] ? 'LATCHKEY_TOKEN' : 'default',
      },
      {
        name: 'application',
        value: settings.application === undefined ? undefined : 'a function',
        origin: settings.application === undefined ? 'default' : (settings.files[0] ?? ''),
      },
    ]
    const origin = { title: 'origin', text: (row: (typeof rows)[number]) => row.origin }
    const shown = flags.has('origin') ? rows : rows.map(({ name, value }) => ({ name, value, origin: '' }))
    const columns = [
      { title: 'setting', text: (row: (typeof rows)[number]) => row.name },
      { title: 'value', text: (row: (typeof rows)[number]) => row.value },
    ]
    out.rows(out.format === 'text' ? shown : rows, flags.has('origin') ? [...columns, origin] : columns)
    return exits.done
  },
}

/** What the variable that `store` names contains. */
function addressRow(store: string, env: NodeJS.ProcessEnv) {
  const isVariable = /^\w+$/.test(store)
  const value = isVariable ? env[store] : store
  return {
    name: 'store address',
    value: value === undefined || value === '' ? undefined : shown(value),
    origin: isVariable ? `environment variable ${store}` : 'store',
  }
}

/** A variable that holds something else, such as a secret whose name was given by mistake, is not shown at all. */
function shown(value: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.test(value) ? masked(value) : '*** (no address: it has no scheme such as postgres://)'
}
