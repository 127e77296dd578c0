import { describe, expect, expectTypeOf, it } from 'vitest'
import { createLatchkey, singleTenant } from '../index.ts'
import { memoryStore } from '../stores/memory/index.ts'
import type { PhasedExecution } from './steps/phased-execution.ts'
import type { JsonOf, Storable } from './json-of.ts'

class Money {
  readonly cents: number = 100

  toJSON(): { cents: number; checkedAt: Date } {
    return { cents: this.cents, checkedAt: new Date(0) }
  }
}

const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })
const guarded = latchkey.guarded('orders.create', { onFailure: 'rerun' })
const request = (key: string) => ({ scope: singleTenant(), key, input: 1 })

describe('the type of what run returns', () => {
  it('is what JSON makes of the handler’s value', async () => {
    const order = await guarded.run(request('order'), async () => ({
      id: 7,
      at: new Date(0),
      total: new Money(),
      note: undefined as string | undefined,
      gone: undefined,
      describe: () => 'an order',
      lines: [new Date(0), undefined, () => 1],
      tags: new Map([['a', 1]]),
    }))
    expectTypeOf(order).toEqualTypeOf<{
      id: number
      at: string
      total: { cents: number; checkedAt: string }
      note?: string
      lines: (string | null)[]
      tags: Record<string, never>
    }>()
    const at = '1970-01-01T00:00:00.000Z'
    expect(order).toEqual({ id: 7, at, total: { cents: 100, checkedAt: at }, lines: [at, null, null], tags: {} })
  })

  it('is the same for a retry, for an atomic operation, a phase and an effect', async () => {
    const handler = async () => new Date(0)
    const first = await guarded.run(request('date'), handler)
    expectTypeOf(first).toEqualTypeOf<string>()
    expect(await guarded.run(request('date'), handler)).toBe(first)
    const inTransaction = await latchkey.atomic('orders.ship').run(request('date'), handler)
    expectTypeOf(inTransaction).toEqualTypeOf<string>()
    expect(inTransaction).toBe(first)
    expectTypeOf<PhasedExecution<unknown>['phase']>().toBeCallableWith('load', handler)
    const phase = (x: PhasedExecution<unknown>) => x.phase('load', handler)
    const effect = (x: PhasedExecution<unknown>) => x.effect('charge', { timeoutMs: 1 }, handler)
    expectTypeOf(phase).returns.resolves.toEqualTypeOf<string>()
    expectTypeOf(effect).returns.resolves.toEqualTypeOf<string>()
  })

  it('leaves plain data as it is, whatever its shape', () => {
    type Kind = { kind: 'card'; last4: string } | { kind: 'cash' }
    interface Tree {
      label: string
      children: Tree[]
    }
    expectTypeOf<JsonOf<Kind>>().toEqualTypeOf<Kind>()
    expectTypeOf<JsonOf<Tree>['children'][0]['children'][0]['label']>().toEqualTypeOf<string>()
    expectTypeOf<JsonOf<[1, 'a', null]>>().toEqualTypeOf<[1, 'a', null]>()
    expectTypeOf<JsonOf<Record<string, Date>>>().toEqualTypeOf<Record<string, string>>()
    expectTypeOf<JsonOf<{ at?: Date }>>().toEqualTypeOf<{ at?: string }>()
    expectTypeOf<JsonOf<string & { readonly brand: 'id' }>>().toEqualTypeOf<string & { readonly brand: 'id' }>()
    expectTypeOf<JsonOf<undefined>>().toEqualTypeOf<undefined>()
    expectTypeOf<JsonOf<void>>().toEqualTypeOf<undefined>()
    expectTypeOf<JsonOf<unknown>>().toEqualTypeOf<unknown>()
    // oxlint-disable-next-line typescript/no-explicit-any -- what JSON.parse returns
    expectTypeOf<JsonOf<any>>().toBeAny()
  })

  it('is no type for what JSON cannot carry: a handler may not return it', () => {
    expectTypeOf<() => void>().not.toExtend<Storable>()
    expectTypeOf<new () => object>().not.toExtend<Storable>()
    expectTypeOf<symbol>().not.toExtend<Storable>()
    expectTypeOf<bigint>().not.toExtend<Storable>()
    expectTypeOf<Promise<number>>().not.toExtend<Storable>()
    expectTypeOf<Date>().toExtend<Storable>()
    expectTypeOf<{ call: string; bind: string }>().toExtend<Storable>()
    // @ts-expect-error a function is not JSON
    const returnsFunction = () => guarded.run(request('f'), () => () => 1)
    // @ts-expect-error a symbol is not JSON
    const returnsSymbol = () => guarded.run(request('s'), async () => Symbol('s'))
    expectTypeOf(returnsFunction).toBeFunction()
    expectTypeOf(returnsSymbol).toBeFunction()
  })

  it('fits a function of your own that is as general', () => {
    const once = <T extends Storable>(run: () => Promise<T>): Promise<JsonOf<T>> => guarded.run(request('once'), run)
    expectTypeOf(once(async () => ({ at: new Date(0) }))).resolves.toEqualTypeOf<{ at: string }>()
  })
})
