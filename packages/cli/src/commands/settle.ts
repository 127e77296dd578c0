import type { AdminKey, EvidenceGiven, SettleGiven } from 'latchkey/admin'
import { readKey, reasonOf, reasonOption, settled, tell } from '../desk/act.ts'
import { runBulk } from '../desk/bulk.ts'
import { importFile, mapHelp } from '../desk/import-file.ts'
import { withActingDesk } from '../desk/open.ts'
import { rowLine } from '../desk/rows.ts'
import type { Call, CommandSpec } from '../program/command.ts'
import { type Exit, exits, usage } from '../program/exit.ts'
import type { Flags } from '../program/flags.ts'
import { confirmPlan, mustBeAskable } from '../terminal/confirm.ts'

export const settle: CommandSpec = {
  path: 'settle',
  summary: 'answers for one unknown row whether it happened; or for many, from a provider’s export',
  args: '[id]',
  options: [
    { flags: '--happened', summary: 'it happened' },
    { flags: '--declined', summary: 'it was attempted and refused for good' },
    { flags: '--did-not-happen', summary: 'it did not happen, and it will be tried again' },
    { flags: '--still-unknown', summary: 'not known yet: writes a note, and waits for the next look-up' },
    { flags: '--effect <name>', summary: 'the open effect that the answer is about' },
    { flags: '--reference <id>', summary: 'the provider’s id of it' },
    {
      flags: '--value <json>',
      summary: 'the result of the effect, as its function would have returned it (default: {"id": <reference>})',
    },
    { flags: '--status <code>', summary: 'guarded work: the status of the response that clients get' },
    { flags: '--response <json>', summary: 'guarded work: the body of the response that clients get' },
    { flags: '--evidence <kind:reference>', summary: 'what you rely on: ticket:4711, export:…, denial:…, other:…' },
    reasonOption,
    { flags: '--if-version <version>', summary: 'only if the row still has this version, as key show printed it' },
    { flags: '--import <file>', summary: 'a CSV file of the provider; needs --map' },
    { flags: '--map <columns>', summary: mapHelp },
  ],
  async run(call) {
    const { args, flags, context } = call
    const file = flags.text('import')
    if ((file === undefined) === (args.length === 0)) throw usage('give the id of a row, or --import with a file')
    mustBeAskable(context)
    if (file === undefined) return settleOne(call, args[0] ?? '')
    const imported = importFile(context.cwd, file, flags.needed('map'))
    const reason = await reasonOf(context, flags)
    return withActingDesk(context, desk =>
      runBulk(context, desk, { act: 'import_evidence', reason, file: imported }, `settle from ${file}`),
    )
  },
}

async function settleOne({ flags, context }: Call, id: string): Promise<Exit> {
  const answer = answerOf(flags)
  const evidence = evidenceOf(flags, answer)
  const response = responseOf(flags)
  const reason = await reasonOf(context, flags)
  return withActingDesk(context, async desk => {
    const row = await readKey(desk, id)
    const plan = {
      act: `settle as ${answer.replaceAll('_', ' ')}`,
      matched: 1,
      sample: [rowLine(row)],
      ...warningOf(answer, row),
    }
    if ((await confirmPlan(context, plan)) === 'dry-run') return exits.done
    const effect = flags.text('effect')
    const given: SettleGiven = {
      ...{ id, reason, answer, version: flags.text('if-version') ?? row.version },
      ...(effect === undefined ? {} : { effect }),
      ...(evidence === undefined ? {} : { evidence }),
      ...(response === undefined ? {} : { response }),
    }
    tell(context, id, await settled(context, desk, id, await desk.settle(given)))
    return exits.done
  })
}

const answers = ['happened', 'declined', 'did-not-happen', 'still-unknown'] as const

function answerOf(flags: Flags): SettleGiven['answer'] {
  const [answer, ...others] = answers.filter(name => flags.has(name))
  if (answer === undefined || others.length > 0)
    throw usage(`give one of ${answers.map(name => `--${name}`).join(', ')}`)
  // The names of the answers, with the other mark between their words.
  return answer.replaceAll('-', '_') as SettleGiven['answer']
}

const evidenceKinds: readonly string[] = ['reference', 'ticket', 'export', 'denial', 'other']

/** What a person relies on is stored with the answer. Only "still unknown" needs nothing. */
function evidenceOf(flags: Flags, answer: SettleGiven['answer']): EvidenceGiven | undefined {
  const given = flags.text('evidence')
  const reference = flags.text('reference')
  if (given === undefined && reference === undefined) {
    if (answer === 'still_unknown') return undefined
    throw usage('--reference or --evidence is missing: what does the answer rely on?')
  }
  const value = valueOf(flags, reference)
  if (given === undefined) return { kind: 'reference', reference: reference ?? '', ...value }
  const [, kind = '', named = ''] = /^([a-z]+):(.+)$/.exec(given) ?? []
  if (!evidenceKinds.includes(kind)) {
    const kinds = evidenceKinds.join(', ')
    throw usage(`--evidence must be a kind and a reference, such as ticket:4711 (got ${given}). The kinds are ${kinds}`)
  }
  // One of the kinds.
  return { kind: kind as EvidenceGiven['kind'], reference: named, ...value }
}

/** Most calls return an object with an id, and little else of it is needed later. */
function valueOf(flags: Flags, reference: string | undefined): { value?: unknown } {
  const text = flags.text('value')
  if (text !== undefined) return { value: jsonOf('--value', text) }
  return reference === undefined ? {} : { value: { id: reference } }
}

function responseOf(flags: Flags): SettleGiven['response'] {
  const statusCode = flags.count('status')
  const json = flags.text('response')
  if (statusCode === undefined && json === undefined) return undefined
  if (statusCode === undefined) throw usage('--response needs --status')
  return { status: statusCode, json: json === undefined ? undefined : jsonOf('--response', json) }
}

function jsonOf(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usage(`${name} must be JSON: ${(error as Error).message}`)
  }
}

function warningOf(answer: SettleGiven['answer'], { effect, operation }: AdminKey): { warning?: string } {
  if (answer !== 'did_not_happen') return {}
  return { warning: `If it did happen after all, ${effect ?? operation} happens twice.` }
}
