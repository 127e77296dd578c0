/** A shop in which every screen has something to show, with hostile text wherever somebody can put text. */
import { createAdmin } from 'latchkey/admin'
import { people } from './people.ts'
import type { World } from './world.ts'

export const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'"\``

/** What people and programs have put into the fields. */
export interface Texts {
  readonly scope: string
  readonly description: string
  readonly order: string
  readonly reason: string
  readonly ticket: string
}

const everywhere: Texts = { scope: hostile, description: hostile, order: hostile, reason: hostile, ticket: hostile }

export async function fillShop(
  { shop }: Pick<World, 'shop'>,
  { scope, description, order, reason, ticket }: Texts = everywhere,
): Promise<{ readonly unknown: string; readonly completed: string }> {
  shop.refusing.isOn = true
  await shop.pay({ order: 'A-1001', amount: 1_290, scope, description })
  const unknown = await shop.unknownPayment(order, { scope, description })
  for (let at = 0; at < 6; at += 1)
    await shop.unknownPayment(`A-${1_043 + at}`, { amount: 4_800 + at * 730, scope: ['acme', 'globex'][at % 2] ?? '' })
  await shop.transfer('globex', 'transfer-1')
  await shop.deployTooEarly(3)
  const admin = createAdmin({ latchkey: shop.latchkey, quarantineMs: () => 0 })
  const operator = { who: people.operator, source: 'console' } as const
  const act = async (id: string) => {
    const found = await admin.key(operator, id)
    return { id, reason, version: found.kind === 'found' ? found.value.version : '' }
  }
  await admin.note(operator, await act(unknown))
  await admin.take(operator, await act(unknown))
  const evidence = { kind: 'ticket', reference: ticket } as const
  await admin.settle(operator, { ...(await act(unknown)), effect: 'charge', answer: 'did_not_happen', evidence })
  await admin.reveal(operator, { ...(await act(unknown)), what: 'input' })
  shop.workers.start()
  const [paid] = await shop.latchkey.find({ reference: 'A-1001' })
  return { unknown, completed: paid?.id ?? '' }
}
