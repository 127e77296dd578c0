import { found } from '../../desk/answers.ts'
import { withDesk } from '../../desk/open.ts'
import { filterOf, filterOptions, limitOption, listRows, rowColumns } from '../../desk/rows.ts'
import type { CommandSpec } from '../../program/command.ts'
import { durationText } from '../../program/duration.ts'
import { exits, usage } from '../../program/exit.ts'

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
          'no unknown outcomes',
        )
        if (partial) out.talk('the store took too long: there may be more than is shown')
        return exits.done
      }
      const failMs = flags.durationMs('fail-older-than')
      const { items: rows, more } = await listRows(desk, filterOf(flags, 'unknown'), flags.count('limit'))
      out.rows(rows, rowColumns(context), 'no unknown outcomes match')
      if (more) out.talk('there are more: raise --limit, or filter')
      if (failMs === undefined) return exits.done
      const ages = rows.map(({ waitsForMs }) => waitsForMs)
      if (!ages.every(ms => typeof ms === 'number'))
        throw usage('this store does not say since when a row is unknown: --fail-older-than has no answer')
      return ages.some(ms => ms > failMs) ? exits.no : exits.done
    }),
}
