import type { AuditFilter, AuditLineOfOperators } from 'latchkey/admin'
import { found } from '../desk/answers.ts'
import type { Desk } from '../desk/desk.ts'
import { withDesk } from '../desk/open.ts'
import { cutText, type Listed, pagesOf } from '../desk/pages.ts'
import { limitOption } from '../desk/rows.ts'
import { pause } from '../program/pause.ts'
import { plain } from '../output/table.ts'
import type { Call, CommandSpec } from '../program/command.ts'
import type { Context } from '../program/context.ts'
import { type Exit, exits } from '../program/exit.ts'
import type { Flags } from '../program/flags.ts'

export const audit: CommandSpec = {
  path: 'audit',
  summary: 'who did what, and what was refused; the newest first, or forward from --after',
  options: [
    { flags: '--follow', summary: 'and what comes, until Ctrl-C' },
    { flags: '--after <audit-id>', summary: 'forward from this entry' },
    { flags: '--who <name>', summary: 'only acts of this person' },
    { flags: '--id <id>', summary: 'only acts on this row' },
    limitOption,
  ],
  run: call =>
    withDesk(call.context, async desk => {
      const { flags, context } = call
      if (flags.has('follow')) return follow(desk, call)
      const listed = await entriesOf(desk, call)
      if (context.out.format === 'json') context.out.rows(listed.items, [])
      else for (const entry of listed.items) print(context, entry)
      const cut = cutText(listed)
      if (cut !== undefined) context.out.talk(cut)
      return exits.done
    }),
}

const pageMax = 100

/** Forward from --after, or back from the newest. */
function entriesOf(desk: Desk, { flags }: Call): Promise<Listed<AuditLineOfOperators>> {
  const from = flags.text('after')
  const cursor = (at: string) => (from === undefined ? { before: at } : { after: at })
  return pagesOf(({ limit, after = from }) => {
    const page = after === undefined ? { limit } : { limit, ...cursor(after) }
    return desk.audit({ ...filterOf(flags), ...page })
  }, flags.count('limit'))
}

function filterOf(flags: Flags): Pick<AuditFilter, 'who' | 'id'> {
  const [who, id] = [flags.text('who'), flags.text('id')]
  return { ...(who === undefined ? {} : { who }), ...(id === undefined ? {} : { id }) }
}

async function pageOf(desk: Desk, { flags }: Call, page: { readonly limit: number; readonly after?: string }) {
  return found(await desk.audit({ ...filterOf(flags), ...page }), 'audit')
}

const followMs = 1_000

/** From the newest on, or from --after. */
async function follow(desk: Desk, call: Call): Promise<Exit> {
  const { flags, context } = call
  let after = flags.text('after') ?? (await pageOf(desk, call, { limit: 1 })).items[0]?.auditId ?? '0'
  context.out.talk('following; Ctrl-C to end')
  while (!context.signal.aborted) {
    const { items, next } = await pageOf(desk, call, { limit: pageMax, after })
    for (const entry of items) print(context, entry)
    // Entries about what this person may not see are on no page: the cursor goes on behind them.
    after = next ?? items.at(-1)?.auditId ?? after
    if (next === undefined || next === null) await pause(followMs, context.signal)
  }
  return exits.interrupted
}

function print({ out, when }: Context, entry: AuditLineOfOperators): void {
  const { auditId, atMs, by, act, id, from, to, reason, evidence, source, refused } = entry
  const moved = from === undefined || from === null ? '' : `  ${from} → ${to ?? from}`
  const said = [
    reason,
    evidence ? `evidence ${evidence}` : '',
    source ? `by ${source}` : '',
    refused ? `REFUSED: ${refused}` : '',
  ]
  out.line(
    entry,
    plain(
      `${auditId}  ${when(atMs)}  ${by}  ${act}  ${id ?? '-'}${moved}  ${said.filter(text => text !== '').join('; ')}`,
    ),
  )
}
