import { readKey, reasonOf, reasonOption, settled, tell } from '../../desk/act.ts'
import { withActingDesk } from '../../desk/open.ts'
import { rowLine } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { exits } from '../../program/exit.ts'
import { confirmPlan, mustBeAskable } from '../../terminal/confirm.ts'

export const keyForget: CommandSpec = {
  path: 'key forget',
  summary: 'deletes a completed row, so that its key is new again; the audit stays',
  args: '<id>',
  options: [reasonOption],
  async run({ args: [id = ''], flags, context }) {
    mustBeAskable(context)
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, async desk => {
      const row = await readKey(desk, id)
      const warning = 'A retry of the client runs again.'
      if ((await confirmPlan(context, { act: 'forget', matched: 1, sample: [rowLine(row)], warning })) === 'dry-run')
        return exits.done
      const outcome = await desk.forget({ id, version: row.version, reason, confirm: id.slice(0, 4) })
      tell(context, id, await settled(context, desk, id, outcome))
      return exits.done
    })
  },
}
