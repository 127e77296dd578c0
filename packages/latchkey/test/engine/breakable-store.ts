/** A real store in a file, each method of which, also those of its steps and its evidence, fails as a test says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import type { Store } from '../../src/ports/store.ts'
import { type SqliteTx, sqliteStore } from '../../src/stores/sqlite/index.ts'
import type { Fault } from './fixture.ts'

export interface BreakableStore {
  /** Fails. */
  readonly store: Store<SqliteTx>
  /** The same rows, and no faults. */
  readonly real: Store<SqliteTx>
  /** By the method's name. */
  faults: { [method: string]: Fault | undefined }
  close(): Promise<void>
}

export async function breakableStore(): Promise<BreakableStore> {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-breakable-'))
  const real = sqliteStore({ path: join(folder, 'keys.db'), open: file => new Database(file) })
  await real.migrate()
  const breakable: BreakableStore = {
    store: over(withoutQueue(real), name => breakable.faults[name]),
    real,
    faults: {},
    async close() {
      await real.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return breakable
}

/** What a test delays is the store's answer, and not a wait in its queue. */
function withoutQueue(store: Store<SqliteTx>): Store<SqliteTx> {
  return { ...store, traits: { ...store.traits, queueMsMax: 0 } }
}

const parts: readonly unknown[] = ['steps', 'phases', 'reconciliation']

function over<T extends object>(target: T, faultOf: (name: string) => Fault | undefined): T {
  return new Proxy(target, {
    get(inner, name) {
      const value: unknown = Reflect.get(inner, name)
      if (parts.includes(name) && typeof value === 'object' && value !== null) return over(value, faultOf)
      const fault = faultOf(String(name))
      if (typeof value !== 'function' || fault === undefined) return value
      // What the methods of a store return is a promise.
      return (...given: unknown[]) => fault(() => Reflect.apply(value, inner, given) as Promise<unknown>)
    },
  })
}
