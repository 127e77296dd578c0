/** What stands in a database whose application encrypts, whichever database it is. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { engine } from '../../src/engine/internal.ts'
import type { RawDatabase } from './databases.ts'
import { fromAToB, underA, underB } from './keys.ts'
import { deliverOne, finds, marker, openShop, type Shop } from './scene.ts'
import { present } from '../present.ts'

/** How many handlers of the shop run when none ran before. */
const allRuns = 5
/** Unknown work is refused, and does not run again. */
const noRuns = 0
const act = { by: 'on-call', reason: 'asked' }

export function sealedCases(openDatabase: () => Promise<RawDatabase>): void {
  let raw: RawDatabase
  const shops: Shop[] = []
  const open = (encryption?: Parameters<typeof openShop>[1]) => {
    const shop = openShop(raw.store, encryption)
    shops.push(shop)
    return shop
  }
  beforeEach(async () => {
    raw = await openDatabase()
  })
  afterEach(async () => {
    for (const shop of shops.splice(0)) await shop.latchkey.close()
    await raw.close()
  })
  dumpCases(() => raw, open)
  plainCases(() => raw, open)
  rotationCases(() => raw, open)
  tamperCases(() => raw, open)
}

type Open = (encryption?: Parameters<typeof openShop>[1]) => Shop

function dumpCases(raw: () => RawDatabase, open: Open): void {
  it('holds the marker everywhere without encryption', async () => {
    const plain = open()
    expect(await plain.runAll()).toBe(allRuns)
    await plain.tell()
    await deliverOne(plain)
    // Answers of four rows, four descriptions, two inputs, two steps, evidence with its name twice, a message, its downstream id.
    expect(finds(await raw().dump())).toBeGreaterThan(15)
  })

  it('holds the marker nowhere with encryption', async () => {
    const shop = open(underA)
    expect(await shop.runAll()).toBe(allRuns)
    await shop.tell()
    await deliverOne(shop)
    const dump = await raw().dump()
    expect(finds(dump)).toBe(0)
    // A dump of nothing would hold no marker either.
    expect(dump).toContain('payments.create')
    expect(await shop.runAll()).toBe(noRuns)
    const { record } = await shop.latchkey.inspect(shop.unknown)
    expect(record).toMatchObject({ state: 'unknown', description: `for ${marker}` })
  })

  it('settles by evidence that was sealed, and replays it', async () => {
    const shop = open(underA)
    await shop.runAll()
    const evidenceId = await shop.tell()
    const applied = await present(shop.store.reconciliation).apply(evidenceId, {
      quarantineMs: 0,
      retentionMs: 3_600_000,
    })
    expect(applied).toEqual({ kind: 'settled', to: 'completed' })
    const { record } = await shop.latchkey.inspect(shop.unknown)
    expect(Buffer.from(record?.outcome?.body ?? []).toString()).toContain(marker)
    expect(finds(await raw().dump())).toBe(0)
  })

  it('recognises a message under its name, although the name is not stored', async () => {
    const shop = open(underA)
    await shop.runAll()
    await shop.tell()
    const again = await present(shop.store.reconciliation).keep(
      { id: shop.latchkey.identify(shop.unknown), effect: undefined },
      {
        source: 'webhook',
        ref: `evt ${marker}`,
        verdict: { kind: 'never-happened' },
        delivery: { signedAtMs: 1_000 },
      },
    )
    expect(again).toEqual({ kind: 'replayed' })
  })
}

function plainCases(raw: () => RawDatabase, open: Open): void {
  it('reads what was stored before encryption, and ends it', async () => {
    const plain = open()
    await plain.runAll()
    await plain.tell()
    const shop = open(underA)
    expect(await shop.runAll()).toBe(noRuns)
    const { rewritten, unreadable } = await shop.latchkey.rewrap({ batch: 2 })
    expect(unreadable).toEqual([])
    expect(rewritten).toBeGreaterThan(10)
    const strict = open({ ...underA, plainValues: 'refuse' })
    expect(await strict.runAll()).toBe(noRuns)
    await deliverOne(strict)
    // The aggregate of a message decides its order, and stays until the message goes.
    expect(finds(await raw().dump())).toBe(1)
    const told = await present(strict.store.reconciliation).keep(
      { id: strict.latchkey.identify(strict.unknown), effect: undefined },
      { source: 'webhook', ref: `evt ${marker}`, verdict: { kind: 'never-happened' }, delivery: { signedAtMs: 1_000 } },
    )
    expect(told).toEqual({ kind: 'replayed' })
  })

  it('refuses plain values where they are not to be there any more', async () => {
    await open().runAll()
    const strict = open({ ...underA, plainValues: 'refuse' })
    await expect(strict.runAll()).rejects.toMatchObject({ code: 'row-unreadable' })
  })
}

function rotationCases(raw: () => RawDatabase, open: Open): void {
  it('writes under a new key, reads both, and rewraps so that the old one can be thrown away', async () => {
    const before = open(underA)
    await before.runAll()
    const evidenceId = await before.tell()
    const between = open(fromAToB)
    expect(await between.runAll()).toBe(noRuns)
    const seen: number[] = []
    const done = await between.latchkey.rewrap({ batch: 3, onProgress: ({ read }) => void seen.push(read) })
    expect(done).toMatchObject({ unreadable: [] })
    // All but the two names of the evidence, which are hashes.
    expect(done.rewritten).toBe(done.read - 2)
    expect(seen.length).toBeGreaterThan(4)
    expect(await between.latchkey.rewrap()).toMatchObject({ rewritten: 0, read: done.read })
    const after = open(underB)
    expect(await after.runAll()).toBe(noRuns)
    await deliverOne(after)
    const applied = await present(after.store.reconciliation).apply(evidenceId, {
      quarantineMs: 0,
      retentionMs: 3_600_000,
    })
    expect(applied.kind).toBe('settled')
    const { record } = await after.latchkey.inspect(after.unknown)
    expect(Buffer.from(record?.outcome?.body ?? []).toString()).toContain(marker)
  })

  it('names the rows that do not open, and leaves them as they are', async () => {
    await open(underA).runAll()
    const other = open(underB)
    const { rewritten, unreadable } = await other.latchkey.rewrap()
    expect(rewritten).toBe(0)
    expect(unreadable).toContain(other.latchkey.identify(other.unknown))
    expect(await open(underA).runAll()).toBe(noRuns)
    expect(raw().store.values).toBeDefined()
  })

  it('leaves a value alone that its owner has written between the read and the replacement', async () => {
    const shop = open(underA)
    await shop.runAll()
    const { values } = raw().store
    const page = await values?.page({ limit: 100, after: 'keys' })
    const value = page?.values.find(each => each.kind === 'outcome')
    if (value?.kind !== 'outcome') throw new Error('there is no outcome')
    await shop.latchkey.forget({ id: value.id }, act)
    expect(await values?.replace(value, value)).toBe('changed')
  })
}

function tamperCases(raw: () => RawDatabase, open: Open): void {
  const ids = (shop: Shop) => ({
    small: shop.latchkey.identify({ ...shop.unknown, key: 'small' }),
    note: shop.latchkey.identify({ ...shop.unknown, operation: 'notes.create', key: 'note' }),
    parcel: shop.latchkey.identify({ ...shop.unknown, operation: 'parcels.send', key: 'parcel' }),
    export: shop.latchkey.identify({ ...shop.unknown, operation: 'exports.create', key: 'export' }),
  })

  it('refuses an outcome of another row, and runs nothing', async () => {
    const shop = open(underA)
    await shop.runAll()
    const { small, note } = ids(shop)
    await raw().write('keys', 'outcome', { id: small, value: await raw().cell('keys', 'outcome', note) })
    await expect(shop.runAll()).rejects.toMatchObject({ code: 'row-unreadable' })
    const { record } = await shop.latchkey.inspect({ id: small })
    expect(record).toMatchObject({ state: 'unreadable', why: expect.stringContaining('outcome was changed, moved') })
  })

  it('refuses an outcome of which a bit was changed', async () => {
    const shop = open(underA)
    await shop.runAll()
    const { small } = ids(shop)
    const bytes = Buffer.from((await raw().cell('keys', 'outcome', small)) as Buffer)
    bytes[bytes.length - 20] = (bytes.at(-20) ?? 0) ^ 1
    await raw().write('keys', 'outcome', { id: small, value: bytes })
    await expect(shop.runAll()).rejects.toMatchObject({ code: 'row-unreadable' })
  })

  it('refuses a text of another column', async () => {
    const shop = open(underA)
    await shop.runAll()
    const { parcel, export: later } = ids(shop)
    const input = await raw().cell('inputs', 'input', parcel)
    await raw().write('steps', 'result', { id: parcel, value: input })
    const steps = await shop.store.steps?.readJournal(parcel)
    expect(steps).toMatchObject({ steps: undefined, why: expect.stringContaining('step 0') })
    await raw().write('keys', 'description', { id: later, value: input })
    expect(await shop.store.read(later)).toMatchObject({ state: 'unreadable' })
  })

  it('refuses the value of another step of the same row', async () => {
    const shop = open(underA)
    await shop.runAll()
    const { parcel } = ids(shop)
    const [, second] = (await shop.store.steps?.readJournal(parcel))?.steps ?? []
    expect(second?.position).toBe(1)
    // Both steps get the bytes of one of them, so that one of the two is in the wrong place.
    await raw().write('steps', 'result', { id: parcel, value: await raw().cell('steps', 'result', parcel) })
    const journal = await shop.store.steps?.readJournal(parcel)
    expect(journal).toMatchObject({ steps: undefined, why: expect.stringContaining('moved from position') })
  })

  it('is not replayed by a process without encryption, which runs nothing either', async () => {
    await open(underA).runAll()
    await expect(open().runAll()).rejects.toMatchObject({ code: 'row-unreadable' })
  })

  it('has no answer for a client whose key is unknown to this process, and runs nothing', async () => {
    await open(underA).runAll()
    const shop = open(underB)
    await expect(shop.runAll()).rejects.toMatchObject({ code: 'row-unreadable' })
    const status = await shop.latchkey[engine].store.read(ids(shop).small)
    expect(status).toMatchObject({ why: expect.stringContaining('key a, which encryption.keys does not have') })
  })
}
