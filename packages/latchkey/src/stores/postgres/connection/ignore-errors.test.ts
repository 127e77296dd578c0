import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { ignoreErrors, ignoreErrorsOfCaller, ignoreErrorsOfPool } from './ignore-errors.ts'
import type { PgClient, PgPool } from '../driver.ts'

/** Both are emitters whose other methods are never called here. */
const emitter = () => new EventEmitter() as unknown as EventEmitter & PgClient & PgPool

describe('the listeners of connections', () => {
  it('are one for each connection, however often it is checked out and by however many stores', () => {
    const [pool, client] = [emitter(), emitter()]
    for (let stores = 0; stores < 3; stores += 1) ignoreErrorsOfPool(pool)
    for (let times = 0; times < 20; times += 1) {
      pool.emit('acquire', client)
      ignoreErrors(client)()
      ignoreErrorsOfCaller(client)
      // A new object around the same connection, as for each transaction that is handed out.
      ignoreErrorsOfCaller(new Proxy(client, {}))
    }
    expect({ pool: pool.listenerCount('error'), client: client.listenerCount('error') }).toEqual({ pool: 1, client: 1 })
  })

  it('leave a connection whose pool emits nothing as it was', () => {
    const client = emitter()
    const stopIgnoring = ignoreErrors(client)
    expect(client.listenerCount('error')).toBe(1)
    stopIgnoring()
    expect(client.listenerCount('error')).toBe(0)
  })

  it('are not put on a transaction that shows no connection', () => {
    const added: unknown[] = []
    ignoreErrorsOfCaller({ on: (event: string) => added.push(event) })
    ignoreErrorsOfCaller(undefined)
    expect(added).toEqual([])
  })
})
