import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { failToStart, killTheRest, type Playground, startPlayground } from './playground-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'latchkey-playground-test-'))
afterAll(() => {
  killTheRest()
  rmSync(directory, { recursive: true, force: true })
})

describe('the playground', () => {
  it('answers its printed lines as it says, from the first to the last', { timeout: 120_000 }, async () => {
    const { paste, commands, line, printed, stop } = await startPlayground(
      ...['--dir', join(directory, 'lines'), '--quarantine', '4000'],
    )
    expect(printed).toContain('Without one: the commands below do the same.')
    const expected = saidOfCommands()
    expect(commands).toHaveLength(expected.length)
    let last = ''
    let ids = { ID: '', CHARGE: '' }
    for (const [index, command] of commands.entries()) {
      const { fits, isLater = false, finds } = expected[index] ?? { fits: () => false }
      const run = () => paste(command.replace('/ID', `/${ids.ID}`).replace('"CHARGE"', `"${ids.CHARGE}"`))
      last = isLater ? await eventually(run, fits) : await run()
      expect(last, command).toSatisfy(fits)
      ids = { ...ids, ...finds?.(last) }
    }
    for (const text of ['"sku":"tea"', '"amount":500', '/transfers']) {
      expect((await paste(line(text))).toLowerCase(), text).toContain('idempotent-replayed: true')
    }
    expect(JSON.parse(bodyOf(await paste(line('/transfers'))))).toEqual({ transfer: ids.CHARGE, amount: 1313 })
    expect(await stop()).toBe(0)
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

  it('restarts the provider at the same address, so that its printed lines are still true', async () => {
    const { paste, line, stop, providerPid } = await startPlayground('--dir', join(directory, 'restarted'))
    const pid = async () => Number(await paste(`curl -s ${controlUrlIn(line('"kind":"slow"'))}/pid`))
    let known = await pid()
    expect(known).toBe(providerPid)
    for (const amount of [700, 701]) {
      await paste(line('"kind":"slow"'))
      const asNew = (command: string) => command.replaceAll('payment-3', `p-${amount}`).replaceAll('700', `${amount}`)
      expect(await paste(asNew(line('kill -9')))).toContain('HTTP/1.1 504')
      await eventually(
        () => paste(asNew(line('"amount":700', 1))),
        text => text.includes('HTTP/1.1 201'),
      )
      expect(chargesOf(await paste(line('/ledger')), amount)).toBe(1)
      expect(await pid()).not.toBe(known)
      known = await pid()
    }
    expect(await stop()).toBe(0)
    expect(() => process.kill(known, 0)).toThrow('ESRCH')
  })

  it('shows what it is at GET /: a page for browsers, text for curl', async () => {
    const { paste, url, commands, stop } = await startPlayground('--dir', join(directory, 'home'))
    const text = await paste(`curl -s ${url}/`)
    expect(text).toContain('A payments API whose operations happen once')
    for (const command of commands) expect(text).toContain(command)
    const page = await fetch(url, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    const shown = await page.text()
    expect(shown).toContain('<h1>Latchkey playground</h1>')
    expect(shown.match(/<pre>/g)).toHaveLength(commands.length)
    expect(shown).toContain('{&quot;sku&quot;:&quot;tea&quot;}')
    expect(await stop()).toBe(0)
  })

  it.each(['/payments', '/payouts', '/transfers'])('answers %s with 402 for good when it is declined', async path => {
    const playground = await startPlayground('--dir', join(directory, `declined${path}`))
    await expectDeclined(playground, path)
    expect(await playground.stop()).toBe(0)
  })

  it('settles a payout by the bank’s webhook, and pays once', async () => {
    const { paste, line, stop } = await startPlayground('--dir', join(directory, 'told'))
    await paste(line('lose-response', 1))
    expect(await paste(line('"amount":800'))).toContain('HTTP/1.1 504')
    const retry = line('"amount":800', 1)
    // A worker or this very retry goes on with the remaining steps, whoever comes first.
    const told = await eventually(
      () => paste(retry),
      text => text.includes('HTTP/1.1 201'),
    )
    const again = await paste(retry)
    expect(again.toLowerCase()).toContain('idempotent-replayed: true')
    expect(bodyOf(again)).toBe(bodyOf(told))
    const [payout] = JSON.parse(await paste(line('/payouts -H', 2)))
    expect(payout).toMatchObject({ amount: 800, charge: 'ch_1' })
    expect(chargesOf(await paste(line('/ledger')), 800)).toBe(1)
    const row = line('/payouts -H', 2).replace('/payouts', `/operator/rows/${payout.reference}`)
    const { row: settled, evidence } = JSON.parse(await paste(row))
    expect(settled).toMatchObject({ state: 'completed', attempts: 2 })
    // The comparison of the ledgers, which begins with the playground, may have seen the charge, too: it settles nothing twice.
    expect(evidence.map(({ source }: { source: string }) => source)).toContain('webhook')
    expect(evidence.filter(({ applied }: { applied: boolean }) => applied)).toHaveLength(1)
    expect(await stop()).toBe(0)
  })

  it('tries a swallowed payout again when the quarantine is over, and pays once', async () => {
    const { paste, line, stop } = await startPlayground('--dir', join(directory, 'swallowed'), '--quarantine', '4000')
    await paste(line('swallow'))
    expect(await paste(line('"amount":900'))).toContain('HTTP/1.1 504')
    expect(chargesOf(await paste(line('/ledger')), 900)).toBe(0)
    await eventually(
      () => paste(line('"amount":900', 1)),
      text => text.includes('HTTP/1.1 201'),
    )
    expect(chargesOf(await paste(line('/ledger')), 900)).toBe(1)
    expect(await stop()).toBe(0)
  })

  it('builds an export by a worker, shows its steps to its tenant only, and replays its outcome', async () => {
    const { paste, line, stop } = await startPlayground('--dir', join(directory, 'export'))
    const begin = line('/exports')
    const begun = await paste(begin)
    expect(begun).toContain('HTTP/1.1 202')
    const { id } = JSON.parse(bodyOf(begun))
    const status = line('/operations/ID').replace('/ID', `/${id}`)
    expect(await paste(status.replace('demo-acme', 'demo-globex'))).toContain('no-such-operation')
    const steps = new Set<string>()
    const ended = await eventually(
      async () => JSON.parse(await paste(status)),
      ({ state, step }) => {
        steps.add(String(step))
        return state === 'completed'
      },
    )
    expect(steps.size).toBeGreaterThan(1)
    expect(ended.outcome).toMatchObject({ status: 201, body: { parts: 4, finished: true } })
    const retry = await paste(begin)
    expect(retry).toContain('HTTP/1.1 201')
    expect(JSON.parse(bodyOf(retry))).toEqual(ended.outcome.body)
    expect(await stop()).toBe(0)
  })

  it('has a person settle the transfer of which nobody can tell', async () => {
    const playground = await startPlayground('--dir', join(directory, 'settled'))
    const { paste, line } = playground
    const lost = line('/transfers')
    expect(await paste(lost)).toContain('HTTP/1.1 504')
    expect(await paste(lost)).toContain('HTTP/1.1 409')
    const [unknown] = JSON.parse(await paste(line('/operator/unknown -H')))
    expect(await paste(line('/settle').replace('/ID/', `/${unknown.id}/`))).toBe('{"kind":"settled"}')
    expect(bodyOf(await paste(lost))).toContain('"amount":1313')
    expect(chargesOf(await paste(line('/ledger')), 1313)).toBe(1)
    expect(await playground.stop()).toBe(0)
  })

  it('gives each resource in a list and by its id, and nothing of another tenant', async () => {
    const { paste, line, stop } = await startPlayground('--dir', join(directory, 'resources'))
    for (const each of ['"sku":"tea"', '"amount":500', '"amount":800', '/exports']) await paste(line(each))
    const get = (path: string, tenant = 'demo-acme') =>
      paste(line('/orders -H', 1).replace('/orders', path).replace('demo-acme', tenant))
    for (const resource of ['orders', 'payments', 'payouts', 'exports', 'ledger']) {
      const [first] = await eventually<{ id: unknown }[]>(
        async () => JSON.parse(await get(`/${resource}`)),
        all => all.length > 0,
      )
      expect(JSON.parse(await get(`/${resource}/${first?.id}`))).toMatchObject({ id: first?.id, account: 'acme' })
      expect(await get(`/${resource}`, 'demo-globex')).toBe('[]')
      expect(await get(`/${resource}/${first?.id}`, 'demo-globex')).toContain('error')
    }
    expect(await stop()).toBe(0)
  })

  it('leaves no provider behind when it stops', async () => {
    const playground = await startPlayground('--dir', join(directory, 'stopped'))
    expect(await playground.stop()).toBe(0)
    expect(() => process.kill(playground.providerPid, 0)).toThrow('ESRCH')
  })

  it.each(['SIGINT', 'SIGTERM'] as const)('removes its temporary directory at %s', async signal => {
    const playground = await startPlayground()
    const files = /files in (\S+)/.exec(playground.printed)?.[1] ?? ''
    expect(existsSync(join(files, 'shop.db'))).toBe(true)
    playground.interrupt(signal)
    expect([await playground.exited, existsSync(files)]).toEqual([0, false])
  })

  it('leaves a directory that it was given', async () => {
    const given = join(directory, 'given')
    const playground = await startPlayground('--dir', given)
    expect([await playground.stop(), existsSync(join(given, 'shop.db'))]).toEqual([0, true])
  })

  it('ends at once at the second Ctrl-C, and leaves nothing behind', async () => {
    const playground = await startPlayground()
    const { paste, line, printed, providerPid, interrupt, exited } = playground
    const files = /files in (\S+)/.exec(printed)?.[1] ?? ''
    // A shutdown waits for a payment that is under way.
    await paste(line('"kind":"slow"').replace('4000', '9000'))
    const paying = paste(line('"amount":500'))
    await eventually(
      async () => JSON.parse(await paste(`curl -s ${controlUrlIn(line('"kind":"slow"'))}/asked`)),
      asked => asked.length === 1,
    )
    interrupt()
    await new Promise(resolve => setTimeout(resolve, 1_000))
    const startedMs = performance.now()
    interrupt()
    expect([await exited, existsSync(files)]).toEqual([130, false])
    expect(performance.now() - startedMs).toBeLessThan(3_000)
    await paying
    await eventually(
      async () => isAlive(providerPid),
      alive => !alive,
    )
  })

  it('says in a sentence what is wrong with its flags, and exits with 2', async () => {
    expect(await failToStart('--colour', 'red')).toMatchObject({ code: 2, said: expect.stringContaining('--colour') })
    expect(await failToStart('--port', 'eighty')).toMatchObject({ code: 2, said: expect.stringContaining('eighty') })
    expect(await failToStart('--store', 'mysql://x')).toMatchObject({
      code: 2,
      said: expect.stringContaining('mysql://x'),
    })
    expect(await failToStart('--provider', 'http://127.0.0.1:1')).toMatchObject({
      code: 2,
      said: expect.stringContaining('two URLs'),
    })
    expect(await failToStart('--quarantine', 'long')).toMatchObject({ code: 2, said: expect.stringContaining('long') })
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
  it('answers an order twice with one row, and settles a payout by webhook', async () => {
    const playground = await startPlayground('--dir', join(directory, 'postgres'), '--store', database.url)
    const order = playground.line('"sku":"tea"')
    expect(bodyOf(await playground.paste(order))).toBe(bodyOf(await playground.paste(order)))
    expect(JSON.parse(await playground.paste(playground.line('/orders -H', 1)))).toHaveLength(1)
    const { paste, line } = playground
    await paste(line('lose-response', 1))
    expect(await paste(line('"amount":800'))).toContain('HTTP/1.1 504')
    await eventually(
      () => paste(line('"amount":800', 1)),
      text => text.includes('HTTP/1.1 201'),
    )
    expect(chargesOf(await paste(line('/ledger')), 800)).toBe(1)
    expect(await playground.stop()).toBe(0)
  })

  it('leaves no payment behind that was declined', async () => {
    const playground = await startPlayground('--dir', join(directory, 'postgres-declined'), '--store', database.url)
    await expectDeclined(playground, '/payments')
    expect(await playground.stop()).toBe(0)
  })

  it('says which database it cannot use, without its password', async () => {
    const refused = await failToStart('--store', 'postgres://user:secret@127.0.0.1:1/none')
    expect(refused).toMatchObject({ code: 2, said: expect.stringContaining('127.0.0.1:1/none') })
    expect(refused.said).not.toContain('secret')
  })
})

interface Said {
  readonly fits: (answer: string) => boolean
  /** A worker may not be done yet. */
  readonly isLater?: boolean
  /** What later commands need. */
  readonly finds?: (answer: string) => { ID?: string; CHARGE?: string }
}

/** What the guide says of each of its commands. */
function saidOfCommands(): readonly Said[] {
  const answers = (status: number): Said => ({ fits: answer => answer.startsWith(`HTTP/1.1 ${status}`) })
  const later = (said: Said): Said => ({ ...said, isLater: true })
  const lists = (length: number): Said => ({ fits: answer => JSON.parse(answer).length === length })
  const charged = (amount: number): Said => ({ fits: answer => chargesOf(answer, amount) === 1 })
  const fault = (kind: string): Said => ({ fits: answer => JSON.parse(answer).fault.kind === kind })
  const idOf = (amount: number) => (answer: string) =>
    JSON.parse(answer).find((each: { amount: number }) => each.amount === amount).id
  return [
    ...[answers(201), lists(1)],
    answers(422),
    answers(201),
    ...[answers(201), charged(500)],
    ...[fault('lose-response'), answers(201), charged(600)],
    ...[fault('slow'), answers(504), later(answers(201)), charged(700)],
    ...[fault('lose-response'), answers(504), later(answers(201)), charged(800)],
    ...[fault('swallow'), answers(504), later(answers(201))],
    { ...answers(202), finds: answer => ({ ID: JSON.parse(bodyOf(answer)).id }) },
    later({ fits: answer => JSON.parse(answer).state === 'completed' }),
    answers(504),
    { ...lists(1), finds: answer => ({ ID: JSON.parse(answer)[0].id }) },
    { ...charged(1313), finds: answer => ({ CHARGE: idOf(1313)(answer) }) },
    { fits: answer => answer === '{"kind":"settled"}' },
  ]
}

function controlUrlIn(command: string): string {
  return /-X PUT (\S+)\/fault/.exec(command)?.[1] ?? ''
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The provider refuses one request, at `path`: nothing is charged, nothing stays, and a retry hears the same. */
async function expectDeclined({ paste, line }: Playground, path: string): Promise<void> {
  await paste(line('lose-response').replace('lose-response', 'refuse'))
  const request = line('"amount":600').replace('/payments', path)
  const declined = await paste(request)
  expect(declined).toContain('HTTP/1.1 402')
  const again = await paste(request)
  expect(again.toLowerCase()).toContain('idempotent-replayed: true')
  expect(bodyOf(again)).toBe(bodyOf(declined))
  expect(chargesOf(await paste(line('/ledger')), 600)).toBe(0)
  if (path === '/transfers') return
  expect(chargesOf(await paste(line('/ledger').replace('/ledger', path)), 600)).toBe(0)
}

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
