/** What the ledger and the tables show about a wish. */
import type { AskedFor, Charge } from '../charge.ts'
import type { ShownRow } from '../operator-routes.ts'
import type { Provider } from '../provider-process.ts'
import type { Payment } from '../shop-database.ts'
import type { Answer, Client, Wish } from './client.ts'

export interface Facts extends ShownRow {
  readonly wish: Wish
  readonly answers: readonly Answer[]
  /** Phased work: the last completed step. */
  readonly step: string | undefined
  /** What the shop recorded: its own rows; for a transfer, which has none, the completed row of its key. */
  readonly intents: number
  readonly payments: readonly Payment[]
  readonly charges: readonly Charge[]
  /** Every request for it that reached the provider. */
  readonly asked: readonly AskedFor[]
}

export interface Sources {
  readonly client: Client
  readonly provider: Provider
}

export async function factsOf({ client, provider }: Sources, wish: Wish, answers: readonly Answer[]): Promise<Facts> {
  const shown = await rowOf(client, wish)
  const id = shown.row?.id
  const isOurs = ({ account, amount }: { account: string; amount: number }) =>
    account === wish.account && amount === wish.amount
  const payments =
    wish.path === '/transfers'
      ? []
      : (await client.read<Payment[]>(wish.account, wish.path)).filter(
          payment => payment.reference === id && isOurs(payment),
        )
  return {
    ...shown,
    wish,
    answers: answers.filter(answer => answer.wish === wish),
    step: id === undefined || wish.path === '/transfers' ? undefined : await lastStep(client, wish.account, id),
    payments,
    intents: wish.path === '/transfers' ? Number(shown.row?.state === 'completed') : payments.length,
    charges: (await provider.ledger()).filter(isOurs),
    asked: (await provider.asked()).filter(isOurs),
  }
}

export function rowOf(client: Client, { account, path, key }: Wish): Promise<ShownRow> {
  return client.read<ShownRow>(account, `/operator/rows/${path.slice(1)}.create/${key}`)
}

async function lastStep(client: Client, account: string, id: string): Promise<string | undefined> {
  const { step } = await client.read<{ step: string | null }>(account, `/operations/${id}`)
  return step ?? undefined
}
