import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import pg from 'pg'
import { describePostgres } from '../../../../../../test/servers/describe-postgres.ts'
import type { Finding, FoundVerdict, KeepResult, Lookup, Subject } from '../../../ports/reconciliation.ts'
import type { Claim, ClaimRequest } from '../../../ports/store.ts'
import { claimCall } from '../keys/claim.ts'
import { completeCall } from '../keys/complete.ts'
import { failCalls } from '../keys/fail.ts'
import { heartbeatCall } from '../keys/heartbeat.ts'
import { dialect } from '../sql/names.ts'
import { postgresStore, type PostgresStore } from '../index.ts'
import { operatorCalls } from '../keys/operator.ts'
import { postgresReconciliation } from './index.ts'
import { inTransaction, type RunStatement } from '../connection/statement.ts'
import { claimRequest } from '../../../../test/claim-request.ts'

const hourMs = 3_600_000
const act = { by: 'on-call', reason: 'asked the provider' }
const notKnown = { to: 'unknown', errorCode: 'ETIMEDOUT', dueInMs: 0 } as const
const answer = (text: string) => ({ status: 201, headers: [], body: Buffer.from(text), version: 1 })
const happened: FoundVerdict = { kind: 'happened', outcome: answer('found') }
const charged: FoundVerdict = { kind: 'happened', value: '"ch_1"' }
const never: FoundVerdict = { kind: 'never-happened' }
const options = { quarantineMs: 0, retentionMs: hourMs }

describePostgres('settling unknowns in postgres, while others do', database => {
  let pool: pg.Pool
  let store: PostgresStore<pg.PoolClient>
  const sql = dialect('latchkey')

  beforeAll(async () => {
    pool = new pg.Pool({ connectionString: database.url, max: 8 })
    // The database is dropped by force when the suite ends, which the last idle connections may still live to see.
    pool.on('error', () => {})
    store = postgresStore({ pool })
    await store.migrate()
  })
  beforeEach(async () => {
    const tables = ['keys', 'inputs', 'steps', 'waiting', 'due', 'evidence', 'received', 'outcomes']
    await pool.query(`truncate ${tables.map(table => `latchkey.${table}`).join(', ')}`)
  })
  afterAll(() => pool.end())

  async function own(over: Partial<ClaimRequest> = {}): Promise<Claim> {
    const result = await store.claim(claimRequest(over))
    if (result.kind !== 'won') throw new Error('expected the claim to be granted')
    return result.claim
  }
  async function unknown(over: Partial<ClaimRequest> = {}): Promise<Claim> {
    const claim = await own(over)
    await store.fail(claim, notKnown)
    return claim
  }
  async function unknownCharge(): Promise<Claim> {
    const claim = await own({ recovery: 'resume', work: { version: 1, input: '{}' } })
    await store.steps?.openIntent(claim, charge(), 30_000)
    await store.fail(claim, notKnown)
    return claim
  }
  const whole = ({ id }: Claim): Subject => ({ id, effect: undefined })
  const chargeOf = ({ id }: Claim): Subject => ({ id, effect: { position: 0, name: 'charge', epoch: 0 } })
  async function kept(subject: Subject, verdict: FoundVerdict): Promise<string> {
    const result = await store.reconciliation.keep(subject, finding(verdict))
    if (result.kind !== 'kept') throw new Error(`expected the evidence to be kept, got ${result.kind}`)
    return result.evidenceId
  }
  const dueNow = { operation: 'payments.create', firstInMs: 0, leaseMs: 0, limit: 10 }
  const lookUp = () => store.reconciliation.lookups(dueNow)
  async function onlyLookup(): Promise<Lookup> {
    const [lookup] = await lookUp()
    if (lookup === undefined) throw new Error('expected a look-up to be due')
    return lookup
  }

  /** Does `first` in a transaction that commits after `meanwhile`; whatever fails, it does not stay open. */
  async function holding<First, Second>(
    first: (run: RunStatement) => Promise<First>,
    meanwhile: () => Promise<Second>,
  ): Promise<[First, Second]> {
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      const done = await first(inTransaction(holder, sql.schema))
      const seen = await meanwhile()
      await holder.query('commit')
      return [done, seen]
    } finally {
      await holder.query('rollback')
      holder.release()
    }
  }

  /** Does `first` in a transaction that commits only when `second`, begun meanwhile, waits for it. */
  async function overtaken<First, Second>(
    first: (run: RunStatement) => Promise<First>,
    second: () => Promise<Second>,
  ): Promise<[First, Second]> {
    const [done, { waits }] = await holding(first, async () => {
      const waits = second()
      await blockedOn(pool)
      return { waits }
    })
    return [done, await waits]
  }

  it('lets the late owner answer while evidence waits, and the evidence stays kept', async () => {
    const claim = await unknown()
    const evidenceId = await kept(whole(claim), happened)
    const [completed, applied] = await overtaken(
      run => completeCall(sql, run).complete(claim, answer('late'), hourMs),
      () => store.reconciliation.apply(evidenceId, options),
    )
    expect(completed === 'written' && applied).toEqual({ kind: 'not-applicable', state: 'completed' })
    expect((await store.read(claim.id))?.outcome?.body?.toString()).toBe('late')
    expect(await applications(claim)).toEqual(['ledger false', 'late-owner true'])
  })

  it('refuses the late owner that waited for evidence to settle its row, and keeps its answer', async () => {
    const claim = await unknown()
    const evidenceId = await kept(whole(claim), happened)
    const [applied, completed] = await overtaken(
      run => postgresReconciliation(sql, run).apply(evidenceId, options),
      () => store.complete(claim, answer('late'), hourMs),
    )
    expect([applied, completed]).toEqual([{ kind: 'settled', to: 'completed' }, 'claim-lost'])
    expect((await store.read(claim.id))?.outcome?.body?.toString()).toBe('found')
    expect(await applications(claim)).toEqual(['ledger true', 'late-owner false'])
  })

  it('raises an epoch once when a person and evidence say at the same moment that it never happened', async () => {
    const claim = await unknownCharge()
    const evidenceId = await kept(chargeOf(claim), never)
    const [settled, applied] = await overtaken(
      run => operatorCalls(sql, run).settle(claim.id, never, act, hourMs),
      () => store.reconciliation.apply(evidenceId, options),
    )
    expect([settled.kind, applied]).toEqual(['settled', { kind: 'not-applicable', state: 'pending' }])
    const journal = await store.steps?.readJournal(claim.id)
    expect(journal?.steps).toMatchObject([{ state: 'again', epoch: 1 }])
  })

  it('tells a person that evidence was faster', async () => {
    const claim = await unknownCharge()
    const evidenceId = await kept(chargeOf(claim), charged)
    const [applied, settled] = await overtaken(
      run => postgresReconciliation(sql, run).apply(evidenceId, options),
      () => store.settle(claim.id, never, act, hourMs),
    )
    expect([applied.kind, settled]).toEqual(['settled', { kind: 'wrong-state', state: 'pending' }])
    const { evidence, audit } = await store.inspect(claim.id)
    expect([evidence.length, audit]).toEqual([1, []])
  })

  it('judges a row that became unknown again while it waited as the new unknown that it is', async () => {
    const claim = await unknown()
    const evidenceId = await kept(whole(claim), never)
    const again = claimRequest({ identity: { ...claimRequest().identity, id: claim.id } })
    const [, applied] = await overtaken(
      async run => {
        await operatorCalls(sql, run).settle(claim.id, never, act, hourMs)
        const result = await claimCall(sql, run).claim(again)
        if (result.kind === 'won') await failCalls(sql, run).fail(result.claim, notKnown)
      },
      () => store.reconciliation.apply(evidenceId, options),
    )
    // It was said before this unknown began, so that it proves nothing about it, not even without a quarantine.
    expect(applied.kind).toBe('too-early')
    expect(await store.read(claim.id)).toMatchObject({ state: 'unknown', fence: 2 })
  })

  it('gives each row to one of two reconcilers, and neither waits for the other', async () => {
    const ids = [(await unknown()).id, (await unknown()).id]
    const query = { ...dueNow, leaseMs: hourMs }
    const [theirs, ours] = await holding(
      run => postgresReconciliation(sql, run).lookups({ ...query, limit: 1 }),
      () => store.reconciliation.lookups(query),
    )
    expect([theirs.length, ours.length]).toEqual([1, 1])
    expect([...theirs, ...ours].map(lookup => lookup.id).toSorted()).toEqual(ids.toSorted())
    expect(await lookUp()).toEqual([])
  })

  it('refuses every word of a look-up that another one overtakes while it waits', async () => {
    const claim = await unknown()
    const evidenceId = await kept(whole(claim), happened)
    const { reconciliation } = store
    const words: readonly ((lookup: Lookup) => Promise<unknown>)[] = [
      lookup => reconciliation.postpone(lookup, hourMs),
      lookup => reconciliation.giveUp(lookup, 'unresolved'),
      async lookup => (await reconciliation.apply(evidenceId, { ...options, lookup })).kind,
    ]
    for (const say of words) {
      const lookup = await onlyLookup()
      const [, said] = await overtaken(
        run => postgresReconciliation(sql, run).lookups(dueNow),
        () => say(lookup),
      )
      expect(said).toBe('claim-lost')
    }
    expect(await store.read(claim.id)).toMatchObject({ state: 'unknown', parked: false })
  })

  it('takes the word of who gave up once, refuses it after a person unparked the row, and says it again after a lost reply', async () => {
    const claim = await unknown()
    const lookup = await onlyLookup()
    const { postpone, giveUp } = store.reconciliation
    expect([await giveUp(lookup, 'gone\0'), await giveUp(lookup, 'gone\0')]).toEqual(['written', 'written'])
    expect(await postpone(lookup, 0)).toBe('claim-lost')
    expect(await store.read(claim.id)).toMatchObject({ parked: true, lastErrorCode: 'gone\uFFFD' })
    expect(await store.unpark(claim.id, act)).toEqual({ kind: 'unparked' })
    expect([await giveUp(lookup, 'gone'), await postpone(lookup, hourMs)]).toEqual(['claim-lost', 'claim-lost'])
    expect(await onlyLookup()).toMatchObject({ id: claim.id, tries: 1 })
    expect((await pool.query('select from latchkey.waiting')).rowCount).toBe(0)
  })

  it('finds evidence that was being kept while the sweeper came', async () => {
    const claim = await own({ leaseMs: 0 })
    const [keeping, swept] = await overtaken(
      run => postgresReconciliation(sql, run).keep(whole(claim), finding(happened)),
      () => store.sweep({ limit: 10, id: claim.id }),
    )
    expect(swept).toMatchObject([{ to: 'unknown' }])
    const waiting = await store.reconciliation.waiting({ limit: 10 })
    expect(waiting).toEqual([{ evidenceId: idOf(keeping), operation: 'payments.create' }])
    expect(await store.reconciliation.apply(idOf(keeping), options)).toEqual({ kind: 'settled', to: 'completed' })
  })

  it('leaves no evidence behind of a row that is reaped while it is kept', async () => {
    const claim = await own()
    await store.complete(claim, answer('done'), 0)
    await pool.query('update latchkey.keys set expires_at = clock_timestamp()')
    const [, reaped] = await holding(
      run => postgresReconciliation(sql, run).keep(whole(claim), finding(happened)),
      () => store.reap({ limit: 10 }),
    )
    expect(reaped).toBe(0)
    expect(await store.reap({ limit: 10 })).toBe(1)
    expect((await pool.query('select from latchkey.evidence')).rowCount).toBe(0)
  })

  it('takes a redelivery that arrives while the first delivery is being kept for what it is', async () => {
    const claim = await unknown()
    const [first, second] = await overtaken(
      run => postgresReconciliation(sql, run).keep(whole(claim), message(1_000)),
      () => store.reconciliation.keep(whole(claim), message(2_000)),
    )
    expect(second).toEqual({ kind: 'duplicate', evidenceId: idOf(first) })
    expect(await store.reconciliation.keep(whole(claim), message(2_000))).toEqual({ kind: 'replayed' })
  })

  it('lets evidence be kept while the owner writes, and waits for nobody', async () => {
    const claim = await own()
    const [, result] = await holding(
      run => heartbeatCall(sql, run).heartbeat(claim, 30_000),
      () => store.reconciliation.keep(whole(claim), finding(happened)),
    )
    expect(result.kind).toBe('kept')
  })

  it('refuses the owner of a later attempt whose row was completed by what was said about an earlier one', async () => {
    const first = await unknown()
    const evidenceId = await kept(whole(first), happened)
    expect(await store.settle(first.id, never, act, hourMs)).toEqual({ kind: 'settled' })
    const second = await own({ identity: { ...claimRequest().identity, id: first.id } })
    expect(await store.complete(first, answer('first'), hourMs)).toBe('claim-lost')
    await store.fail(second, notKnown)
    // What the first owner said after it had lost its claim is kept, but waits for nobody.
    expect(await store.reconciliation.waiting({ limit: 10 })).toMatchObject([{ evidenceId }])
    expect(await store.reconciliation.apply(evidenceId, options)).toEqual({ kind: 'settled', to: 'completed' })
    expect(await store.complete(second, answer('second'), hourMs)).toBe('claim-lost')
    expect((await store.read(first.id))?.outcome?.body?.toString()).toBe('found')
  })

  it('tells refs apart that text cannot hold, and takes anything for an identity', async () => {
    const claim = await unknown()
    const refs = ['a', 'a\0', 'a\uFFFD', 'a\ud800', '"a"', 'a\\u0000', '']
    for (const ref of refs) {
      const found = await store.reconciliation.keep(whole(claim), { ...finding(happened), ref })
      expect(found.kind).toBe('kept')
    }
    const effect = { position: 0, name: 'cha\0rge', epoch: 0 }
    await store.reconciliation.keep({ id: claim.id, effect }, finding(charged))
    expect((await store.inspect(claim.id)).evidence.at(-1)?.effect).toBe('cha\uFFFDrge')
    for (const id of ['', 'x', `${claim.id}0`, "'; drop table keys --"]) {
      expect(await store.reconciliation.keep({ id, effect: undefined }, finding(happened))).toEqual({ kind: 'no-row' })
      expect(await store.reconciliation.findEffect(id)).toBeUndefined()
      expect(await store.reconciliation.apply(id, options)).toEqual({ kind: 'not-applicable', state: undefined })
    }
  })

  it('finds an effect by its downstream key in the index', async () => {
    await pool.query(`
      insert into latchkey.steps (id, position, name, kind, state, opened_at, downstream_key, downstream_epoch)
      select gen_random_uuid(), 0, 'charge', 1, 0, now(), gen_random_uuid(), 0 from generate_series(1, 5000);
      analyze latchkey.steps`)
    const key = randomUUID()
    const { rows } = await pool.query(`explain select from latchkey.steps where downstream_key = '${key}'`)
    expect(rows.map(row => row['QUERY PLAN']).join('\n')).toContain('steps_downstream_key')
    const claim = await own({ recovery: 'resume', work: { version: 1, input: '{}' } })
    await store.steps?.openIntent(claim, { ...charge(), key }, 30_000)
    expect(await store.reconciliation.findEffect(key.toUpperCase())).toEqual(chargeOf(claim))
  })

  async function applications(claim: Claim): Promise<readonly string[]> {
    return (await store.inspect(claim.id)).evidence.map(({ source, applied }) => `${source} ${applied}`)
  }
})

let refs = 0

function finding(verdict: FoundVerdict): Finding {
  refs += 1
  return { source: 'ledger', ref: `finding ${refs}`, verdict }
}

function message(signedAtMs: number): Finding {
  return { source: 'webhook', ref: 'message', verdict: happened, delivery: { signedAtMs } }
}

function idOf(result: KeepResult): string {
  if (!('evidenceId' in result)) throw new Error(`expected evidence, got ${result.kind}`)
  return result.evidenceId
}

function charge() {
  return { position: 0, name: 'charge', epoch: 0, key: randomUUID(), windowMs: undefined }
}

/** Until a statement waits for a row that another transaction holds. */
async function blockedOn(pool: pg.Pool): Promise<void> {
  const waiting = async () =>
    (await pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`))
      .rowCount
  await expect.poll(waiting, { timeout: 30_000, interval: 20 }).toBeGreaterThan(0)
}
