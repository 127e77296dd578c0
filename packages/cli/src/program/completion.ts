/** What may come next on the command line, and the scripts that ask for it. */
import type { CommandSpec } from './command.ts'
import { globalOptions } from './program.ts'

/** The word that the scripts call the program with. It is not in the help. */
export const completeWord = '__complete'

/** `words`: those before the one that is being written. */
export function candidates(
  commands: readonly CommandSpec[],
  words: readonly string[],
  begun: string,
): readonly string[] {
  const typed = words.filter(word => !word.startsWith('-'))
  const spec = commands
    .toSorted((a, b) => b.path.length - a.path.length)
    .find(({ path }) => ` ${typed.join(' ')} `.startsWith(` ${path} `))
  const next = commands
    .map(({ path }) => path.split(' '))
    .filter(path => path.length > typed.length && typed.every((word, index) => path[index] === word))
    .map(path => path[typed.length] ?? '')
  const options = [...(spec?.options ?? []), ...globalOptions].flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? [])
  const shells = spec?.path === 'completion' ? Object.keys(scripts) : []
  const all = begun.startsWith('-') ? options : [...next, ...shells]
  return [...new Set(all)].filter(word => word.startsWith(begun)).toSorted()
}

const bash = `_latchkey() {
  local IFS=$'\\n'
  COMPREPLY=($(latchkey ${completeWord} "--at=\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null))
}
complete -F _latchkey latchkey`

const zsh = `#compdef latchkey
_latchkey() {
  local -a found
  found=("\${(@f)$(latchkey ${completeWord} "--at=\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
  compadd -a found
}
compdef _latchkey latchkey`

const fish = `function __latchkey_complete
  set -l before (commandline -opc)
  latchkey ${completeWord} "--at="(commandline -ct) $before[2..-1] 2>/dev/null
end
complete -c latchkey -f -a '(__latchkey_complete)'`

const powershell = `Register-ArgumentCompleter -Native -CommandName latchkey -ScriptBlock {
  param($begun, $ast, $position)
  $before = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $position } | ForEach-Object { $_.ToString() })
  latchkey ${completeWord} "--at=$begun" @before 2>$null | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}`

export const scripts: Readonly<Record<string, string>> = { bash, zsh, fish, powershell }
