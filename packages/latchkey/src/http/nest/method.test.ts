import 'reflect-metadata'
import * as common from '@nestjs/common'
import { describe, expect, it } from 'vitest'
import { type Class, decorate } from '../../../test/http/nest.ts'
import { createLatchkey } from '../../engine/latchkey.ts'
import { memoryStore } from '../../stores/memory/index.ts'
import { Idempotent, LatchkeyExecution } from './index.ts'
import { requestIndex } from './metadata.ts'

const operation = createLatchkey({ store: memoryStore(), scope: () => 'acme' }).guarded('orders.create', {
  onFailure: 'rerun',
})

function ordersOf(parameters: readonly ParameterDecorator[]) {
  class Orders {
    create(order: string, execution?: unknown): unknown[] {
      return [this instanceof Orders, order, execution]
    }
  }
  parameters.forEach((one, index) => one(Orders.prototype, 'create', index))
  decorate(Orders as Class, 'create', [Idempotent(operation)])
  return Orders
}

/** As Nest calls it on a transport that has `given` in the place of a request. */
function callAsNest(target: object, given: unknown, order: unknown): unknown {
  const args = Array.from({ length: requestIndex + 1 }, (): unknown => undefined)
  args[0] = order
  args[requestIndex] = given
  return Reflect.apply(Reflect.get(target, 'create'), target, args)
}

describe('a covered method', () => {
  it('is the method itself for code that calls it without Nest, with an execution of its own', () => {
    const Orders = ordersOf([common.Body(), LatchkeyExecution()])
    expect(new Orders().create('tea', 'theirs')).toEqual([true, 'tea', 'theirs'])
    expect([Orders.prototype.create.name, Orders.prototype.create.length]).toEqual(['create', 2])
  })

  it('is the method itself for one that overrides it', () => {
    class Special extends ordersOf([common.Body()]) {
      override create(order: string): unknown[] {
        return super.create(`special ${order}`)
      }
    }
    expect(new Special().create('tea')).toEqual([true, 'special tea', undefined])
  })

  it.each([null, {}, { id: 'a socket' }])('runs outside of HTTP as if it were not covered, for %j', given => {
    expect(callAsNest(new (ordersOf([common.Body()]))(), given, 'tea')).toEqual([true, 'tea', undefined])
  })

  it('says outside of HTTP that parameters without a decorator are not passed', () => {
    expect(() => callAsNest(new (ordersOf([]))(), null, 'tea')).toThrow('Orders.create: outside of HTTP')
  })

  it('does not run for an HTTP request that its interceptor has not seen', () => {
    const calling = () => callAsNest(new (ordersOf([common.Body()]))(), { rawHeaders: [] }, 'tea')
    expect(calling).toThrow('put @Idempotent() above that one')
  })
})
