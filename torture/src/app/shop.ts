/** The shop's own tables. None of them refuses a second row for a key, so that a duplicate is visible. */
import type pg from 'pg'

export const shopTables = `
create table orders (id serial primary key, key text not null, account text not null, sku text not null);
-- The reference is what the provider knows a charge by; of both tables together, it is the shop's own ledger.
create table payments (id serial primary key, key text not null, account text not null, amount integer not null,
  reference text collate "C" not null, charge text);
create table refunds (like payments including all);
create sequence refunds_id; alter table refunds alter column id set default nextval('refunds_id');
create table receipts (account text not null, seq integer not null, key text not null);
create table accounts (account text primary key, receipts integer not null default 0);
-- A transfer may run again, because running again changes nothing; how often it did is counted.
create table transfers (id serial, key text primary key, account text not null, runs integer not null default 1);
`

/** Where a store has no transactions with these tables, the row of a payment is written by an effect, which may be repeated. */
export const repeatableRows = `
create unique index on payments (reference);
create unique index on refunds (reference);
`

type Queryable = Pick<pg.PoolClient, 'query'>

export async function insertOrder(tx: Queryable, { key, account }: Asked): Promise<number> {
  return idOf(
    await tx.query('insert into orders (key, account, sku) values ($1, $2, $3) returning id', [key, account, 'tea']),
  )
}

export type MoneyTable = 'payments' | 'refunds'

export async function insertMoney(tx: Queryable, table: MoneyTable, asked: Asked & { id: string }): Promise<number> {
  const { key, account, amount, id } = asked
  const text = `insert into ${table} (key, account, amount, reference) values ($1, $2, $3, $4) returning id`
  return idOf(await tx.query(text, [key, account, amount, referenceOf({ key, id })]))
}

/** The effect that writes the row of a payment, where there are no transactions. */
export const recordEffect = 'record'

/** The same row, however often it is written. */
export async function upsertMoney(pool: Queryable, table: MoneyTable, asked: Asked & { id: string }): Promise<number> {
  const { key, account, amount, id } = asked
  const text = `insert into ${table} (key, account, amount, reference) values ($1, $2, $3, $4)
    on conflict (reference) do update set amount = excluded.amount returning id`
  return idOf(await pool.query(text, [key, account, amount, referenceOf({ key, id })]))
}

export async function markCharged(
  tx: Queryable,
  table: MoneyTable,
  made: { id: number; charge: string },
): Promise<void> {
  await tx.query(`update ${table} set charge = $2 where id = $1`, [made.id, made.charge])
}

export interface OwnEntry {
  readonly reference: string
  readonly charge: string | null
}

/** A page of the shop's ledger, in ascending order. */
export async function ownEntries(pool: Queryable, after: string, limit: number): Promise<readonly OwnEntry[]> {
  const both = ['payments', 'refunds'].map(table => `select reference, charge from ${table} where reference > $1`)
  const text = `${both.join(' union all ')} order by reference limit $2`
  return (await pool.query<OwnEntry>(text, [after, limit])).rows
}

/** The client's key, for the checker, and the row's id, to find the row. */
export function referenceOf({ key, id }: { key: string; id: string }): string {
  return `${key} ${id}`
}

export async function upsertTransfer(pool: Queryable, { key, account }: Asked): Promise<number> {
  const text = `insert into transfers (key, account) values ($1, $2)
    on conflict (key) do update set runs = transfers.runs + 1 returning id`
  return idOf(await pool.query(text, [key, account]))
}

/** The next number of the account's receipts. The row's lock makes the order of numbers the order of commits. */
export async function insertReceipt(tx: Queryable, { key, account }: Asked): Promise<number> {
  const text = `insert into accounts (account, receipts) values ($1, 1)
    on conflict (account) do update set receipts = accounts.receipts + 1 returning receipts as id`
  const seq = idOf(await tx.query(text, [account]))
  await tx.query('insert into receipts (account, seq, key) values ($1, $2, $3)', [account, seq, key])
  return seq
}

export interface Asked {
  readonly key: string
  readonly account: string
  readonly amount: number
  /** Kills whichever process runs it. */
  readonly poison?: boolean
}

function idOf({ rows }: pg.QueryResult<{ id: number }>): number {
  const [row] = rows
  if (row === undefined) throw new Error('insert … returning gave no row')
  return row.id
}

/** Some charges have no webhook and cannot be looked up at first, so that the ledger comparison has something to settle. */
export function isBooksOnly(key: string): boolean {
  return Number(key.split('-').at(-1)) % 3 === 0
}
