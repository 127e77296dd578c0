import type { CommandSpec } from '../program/command.ts'
import { exits, usage } from '../program/exit.ts'
import { scripts } from '../program/completion.ts'

export const completion: CommandSpec = {
  path: 'completion',
  summary: 'a script that completes commands and options: bash, zsh, fish or powershell',
  args: '<shell>',
  async run({ args: [shell = ''], context: { out } }) {
    const script = scripts[shell]
    if (script === undefined)
      throw usage(`there is no completion for ${shell}: choose from ${Object.keys(scripts).join(', ')}`)
    out.value({ shell, script }, () => [script])
    return exits.done
  },
}
