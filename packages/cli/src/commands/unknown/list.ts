import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import { cutText, undecided } from '../../desk/pages.ts'
import { filterOf, filterOptions, limitOption, listRows, rowColumns } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { durationText } from '../../program/duration.ts'
import { type Exit, exits, usage } from '../../program/exit.ts'

export const unknownList: CommandSpec = {
  path: 'unknown list',
  summary: 'the unknown outcomes, longest waiting first',
  options: [
    ...filterOptions,
    limitOption,
    { flags: '--group-by <what>', summary: 'how many, by operation and cause', choices: ['cause'] },
    { flags: '--fail-older-than <duration>', summary: 'exit with 1 if one has been unknown for longer' },
  ],
  run: ({ flags, context }) =>
    withDesk(context, async desk => {
      const { out } = context
      const failMs = flags.durationMs('fail-older-than')
      if (flags.text('group-by') !== undefined) {
        if (filterOptions.some(option => flags.text(option.flags.slice(2).split(' ')[0] ?? '') !== undefined)) {
          throw usage('--group-by counts all of them: give it without a filter')
        }
        const { groups, partial } = found(await desk.groups('unknown'), 'unknown')
        out.rows(
          groups,
          [
            { title: 'operation', text: ({ operation }) => operation },
            { title: 'cause', text: ({ cause }) => cause },
            { title: 'rows', text: ({ count }) => count },
            { title: 'oldest', text: ({ oldestMs }) => durationText(oldestMs) },
          ],
          partial ? undefined : 'no unknown outcomes',
        )
        const cut = cutText({ more: false, partial })
        if (cut !== undefined) out.talk(cut)
        return verdict({ ages: groups.map(({ oldestMs }) => oldestMs), failMs, partial })
      }
      const listed = await listRows(desk, filterOf(flags, 'unknown'), flags.count('limit'))
      const { items: rows, partial } = listed
      const cut = cutText(listed)
      out.rows(rows, rowColumns(context), partial ? undefined : 'no unknown outcomes match')
      if (cut !== undefined) out.talk(cut)
      if (failMs === undefined) return exits.done
      const ages = rows.map(({ waitsForMs }) => waitsForMs)
      if (!ages.every(ms => typeof ms === 'number'))
        throw usage('this store does not say since when a row is unknown: --fail-older-than has no answer')
      return verdict({ ages, failMs, partial })
    }),
}

interface Asked {
  readonly ages: readonly number[]
  readonly failMs: number | undefined
  readonly partial: boolean
}

function verdict({ ages, failMs, partial }: Asked): Exit {
  if (failMs === undefined) return exits.done
  if (ages.some(ms => ms > failMs)) return exits.no
  if (partial) throw undecided('unknown list')
  return exits.done
}
