import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { itEndsAtomically } from '../atomic/endings.cases.ts'
import { memoryShop, type Shop } from '../atomic/fixture.ts'
import { itDefers } from '../deferred/deferred.cases.ts'
import { itSettlesDoubts } from '../phased/settle.cases.ts'
import { itRunsInPhases } from '../phased/steps.cases.ts'
import { itSettlesUnknowns } from '../reconcile/settle.cases.ts'
import { createKeyring } from '../../src/engine/sealed/keyring.ts'
import { sealedStore } from '../../src/engine/sealed/store.ts'
import { systemClock } from '../../src/ports/clock.ts'
import type { Store } from '../../src/ports/store.ts'
import { underA } from './keys.ts'

const over = (store: Store) => sealedStore(store, createKeyring(underA, systemClock))

async function encryptedShop(): Promise<Shop> {
  const shop = await memoryShop()
  return { ...shop, store: over(shop.store), another: async () => over(await shop.another()) }
}

describe('encrypted, in memory', () => {
  describe('an atomic operation', () => itEndsAtomically(encryptedShop))
  describe('phased work', () => itRunsInPhases(() => 'encrypted+memory:sealed-phased'))
  describe('phased work in doubt', () => itSettlesDoubts(() => 'encrypted+memory:sealed-doubts'))
  describe('deferred work', () => itDefers(() => 'encrypted+memory:sealed-deferred'))
  describe('an unknown payment', () => itSettlesUnknowns(() => 'encrypted+memory:sealed-reconcile'))
})

describe('encrypted, on one SQLite file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-sealed-'))
  const file = (name: string) => () => `encrypted+${join(directory, name)}`
  describe('phased work', () => itRunsInPhases(file('phased.db')))
  describe('deferred work', () => itDefers(file('deferred.db')))
  describe('an unknown payment', () => itSettlesUnknowns(file('reconcile.db')))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
})
