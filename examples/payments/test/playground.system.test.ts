import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { failToStart, killTheRest, startPlayground } from './playground-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-playground-test-'))
afterAll(() => {
  killTheRest()
  rmSync(directory, { recursive: true, force: true })
})

describe('the playground', () => {
  it('answers its printed lines as it says', async () => {
    const playground = await startPlayground('--dir', join(directory, 'lines'))
    const { paste, line } = playground
    const order = line('"sku":"tea"')
    const first = await paste(order)
    expect(first).toContain('HTTP/1.1 201')
    const second = await paste(order)
    expect(second.toLowerCase()).toContain('idempotent-replayed: true')
    expect(bodyOf(second)).toBe(bodyOf(first))
    expect(JSON.parse(await paste(line('/orders -H', 1)))).toHaveLength(1)
    expect(await paste(line('"sku":"coffee"'))).toContain('HTTP/1.1 422')
    expect(await paste(line('demo-globex'))).toContain('HTTP/1.1 201')

    const payment = line('"amount":500')
    expect(bodyOf(await paste(payment))).toBe(bodyOf(await paste(payment)))
    expect(JSON.parse(await paste(line('/ledger')))).toHaveLength(1)

    await paste(line('lose-response'))
    expect(await paste(line('"amount":600'))).toContain('HTTP/1.1 201')
    expect(chargesOf(await paste(line('/ledger')), 600)).toBe(1)

    const lost = line('/transfers')
    expect(await paste(lost)).toContain('HTTP/1.1 504')
    expect(await paste(lost)).toContain('HTTP/1.1 409')
    const [unknown] = JSON.parse(await paste(line('/operator/unknown -H')))
    expect(await paste(line('/settle').replace('/ID/', `/${unknown.id}/`))).toBe('{"kind":"settled"}')
    expect(bodyOf(await paste(lost))).toContain('"amount":1313')
    expect(chargesOf(await paste(line('/ledger')), 1313)).toBe(1)
    expect(await playground.stop()).toBe(0)
  })

  it('finishes a payment by itself whose provider was killed in the middle, and charges once', async () => {
    const { paste, line, stop } = await startPlayground('--dir', join(directory, 'killed'))
    await paste(line('"kind":"slow"'))
    await paste(line('kill -9'))
    const retry = line('"amount":700', 1)
    // A worker or this very retry finishes it, whoever comes first.
    await eventually(
      () => paste(retry),
      text => text.includes('HTTP/1.1 201'),
    )
    expect((await paste(retry)).toLowerCase()).toContain('idempotent-replayed: true')
    expect(chargesOf(await paste(line('/ledger')), 700)).toBe(1)
    expect(await stop()).toBe(0)
  })

  it('leaves no provider behind when it stops', async () => {
    const playground = await startPlayground('--dir', join(directory, 'stopped'))
    expect(await playground.stop()).toBe(0)
    expect(() => process.kill(playground.providerPid, 0)).toThrow('ESRCH')
  })

  it('says in a sentence what is wrong with its flags, and exits with 2', async () => {
    expect(await failToStart('--colour', 'red')).toMatchObject({ code: 2, said: expect.stringContaining('--colour') })
    expect(await failToStart('--port', 'eighty')).toMatchObject({ code: 2, said: expect.stringContaining('eighty') })
    expect(await failToStart('--store', 'mysql://x')).toMatchObject({
      code: 2,
      said: expect.stringContaining('mysql://x'),
    })
  })

  it('refuses a port in use and a directory that cannot be written, and exits with 2', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => taken.once('listening', resolve))
    const port = String((taken.address() as { port: number }).port)
    const inUse = await failToStart('--dir', join(directory, 'port'), '--port', port)
    taken.close()
    expect(inUse).toMatchObject({ code: 2, said: expect.stringContaining(`port ${port} is in use`) })

    // A file where a directory is needed: refused for root, too, who may write anywhere else.
    const file = join(directory, 'file')
    writeFileSync(file, '')
    chmodSync(file, 0o444)
    const unwritable = await failToStart('--dir', join(file, 'inside'))
    expect(unwritable).toMatchObject({ code: 2, said: expect.stringContaining('cannot be written') })
  })
})

describePostgres('the playground on PostgreSQL', database => {
  it('answers an order twice with one row', async () => {
    const playground = await startPlayground('--dir', join(directory, 'postgres'), '--store', database.url)
    const order = playground.line('"sku":"tea"')
    expect(bodyOf(await playground.paste(order))).toBe(bodyOf(await playground.paste(order)))
    expect(JSON.parse(await playground.paste(playground.line('/orders -H', 1)))).toHaveLength(1)
    expect(await playground.stop()).toBe(0)
  })

  it('says which database it cannot use, without its password', async () => {
    const refused = await failToStart('--store', 'postgres://user:secret@127.0.0.1:1/none')
    expect(refused).toMatchObject({ code: 2, said: expect.stringContaining('127.0.0.1:1/none') })
    expect(refused.said).not.toContain('secret')
  })
})

function bodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}

function chargesOf(ledger: string, amount: number): number {
  const charges: { amount: number }[] = JSON.parse(ledger)
  return charges.filter(charge => charge.amount === amount).length
}

/** The machine is slow now and then: a condition is waited for, not a time. */
async function eventually<T>(ask: () => Promise<T>, fits: (value: T) => boolean): Promise<T> {
  const until = performance.now() + 45_000
  for (;;) {
    const value = await ask()
    if (fits(value)) return value
    if (performance.now() > until) throw new Error(`still ${String(value)}`)
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}
