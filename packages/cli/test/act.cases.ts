/** What operators do, on any store. */
import { userInfo } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { AdminRow, LaneState, ParkedMessageView } from 'latchkey/admin'
import { type Desk, linesOf, noRow, reason } from './desk.ts'
import { onTerminal } from './terminal.ts'

export function actCases(desk: Desk): void {
  settleCases(desk)
  repeatedSettleCases(desk)
  noTerminalCases(desk)
  terminalCases(desk)
  parkedCases(desk)
  messageCases(desk)
  lookUpCases(desk)
  importCases(desk)
}

function settleCases({ harness, run, json, settle, show, auditOf }: Desk): void {
  describe('settle', () => {
    it('records that an effect happened, in the audit, in the name of the user of this machine', async () => {
      const id = await harness().shop.unknownPayment('happened')
      const { code, stderr } = await settle(id, '--effect', 'charge', '--happened', '--reference', 'ch_1')
      expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringMatching(/straight to .* as os:/) })
      expect((await show(id)).state).toBe('pending')
      expect(await auditOf(id)).toContainEqual(
        expect.objectContaining({
          by: expect.stringMatching(`^os:${userInfo().username}@`),
          source: 'cli',
          reason: 'seen in the dashboard',
          from: 'unknown',
          to: 'pending',
        }),
      )
    })

    it('records the answer of guarded work, which clients get', async () => {
      const id = await harness().shop.unknownRefund('answered')
      expect(
        (await settle(id, '--happened', '--reference', 're_9', '--status', '201', '--response', '{"id":"re_9"}')).code,
      ).toBe(0)
      expect(await show(id)).toMatchObject({ state: 'completed', status: 201 })
    })

    it('is refused inside the quarantine with 4, and that is in the audit', async () => {
      const id = await harness().shop.unknownPayment('too early')
      const { code, stderr } = await settle(id, '--effect', 'charge', '--did-not-happen', '--evidence', 'ticket:4711')
      expect(code).toBe(4)
      expect(stderr).toMatch(/quarantine is over in \d+m/)
      expect((await show(id)).state).toBe('unknown')
      expect(await auditOf(id)).toContainEqual(
        expect.objectContaining({ refused: expect.stringContaining('quarantine') }),
      )
    })

    it('is proposed after the quarantine, and nobody approves their own proposal', async () => {
      const id = await harness().shop.unknownPayment('late enough')
      await harness().age(3_600_000)
      const { code, stderr } = await settle(id, '--effect', 'charge', '--did-not-happen', '--evidence', 'ticket:4711')
      expect(code).toBe(4)
      const [, proposal = ''] = /proposed as (\S+);/.exec(stderr) ?? []
      expect(await json('proposals', 'list')).toContainEqual(
        expect.objectContaining({ proposalId: proposal, id, evidence: expect.stringContaining('4711') }),
      )
      const own = await run(['proposals', 'approve', proposal, ...reason])
      expect(own.code).toBe(4)
      expect(own.stderr).toContain('another person must decide')
      expect((await run(['proposals', 'reject', proposal, ...reason])).code).toBe(4)
    })
  })
}

function repeatedSettleCases({ harness, run, settle, show }: Desk): void {
  describe('settle, a second time or wrongly', () => {
    it('tells a second person that the row moved, and who moved it', async () => {
      const id = await harness().shop.unknownPayment('two people')
      const { version } = await show(id)
      expect((await settle(id, '--effect', 'charge', '--happened', '--reference', 'ch_1')).code).toBe(0)
      const second = await settle(
        id,
        '--effect',
        'charge',
        '--happened',
        '--reference',
        'ch_2',
        '--if-version',
        version,
      )
      expect(second.code).toBe(4)
      expect(second.stderr).toMatch(/has moved since it was read/)
      expect(second.stderr).toMatch(/last act: settle\S* by os:.*seen in the dashboard/)
    })

    it('says which kind of answer a row needs', async () => {
      const id = await harness().shop.unknownPayment('wrong kind')
      const { code, stderr } = await settle(id, '--happened', '--reference', 'x', '--status', '201', '--response', '{}')
      expect(code).toBe(4)
      expect(stderr).toContain('--effect charge')
    })

    it.each([
      ['no answer', ['--reference', 'x']],
      ['nothing to rely on', ['--happened']],
      ['two answers', ['--happened', '--did-not-happen', '--reference', 'x']],
      ['evidence of no kind', ['--happened', '--evidence', 'gut feeling']],
      ['a value that is no JSON', ['--happened', '--reference', 'x', '--value', '{']],
    ])('with %s is 2, before anything is read', async (_what, args) => {
      const { code } = await run(['settle', noRow, '--yes', ...reason, ...args], {
        env: { DATABASE_URL: 'postgres://127.0.0.1:1/x', LATCHKEY_STORE: 'DATABASE_URL' },
      })
      expect(code).toBe(2)
    })

    it('shows what it would do in a dry run, and does nothing', async () => {
      const id = await harness().shop.unknownPayment('dry')
      const { code, stdout } = await run([
        'settle',
        id,
        '--happened',
        '--effect',
        'charge',
        '--reference',
        'x',
        '--dry-run',
        ...reason,
      ])
      expect(code).toBe(0)
      expect(stdout).toContain(id)
      expect((await show(id)).state).toBe('unknown')
    })
  })
}

function noTerminalCases({ run }: Desk): void {
  describe('without a terminal', () => {
    it.each([
      ['settle', ['settle', noRow, '--happened', '--reference', 'x', ...reason]],
      ['key forget', ['key', 'forget', noRow, ...reason]],
      ['look-up of many', ['unknown', 'look-up', '--all-matching', ...reason]],
      ['an act without a reason', ['parked', 'resume', noRow]],
    ])('%s ends with 2 before it connects', async (_what, args) => {
      const env = { DATABASE_URL: 'postgres://127.0.0.1:1/x', LATCHKEY_STORE: 'DATABASE_URL' }
      const { code, stdout } = await run(args, { env })
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    })
  })
}

function terminalCases({ program, harness, settle, show }: Desk): void {
  describe('on a terminal', () => {
    const on = (args: readonly string[], question: RegExp, answer: string, before?: () => Promise<unknown>) =>
      onTerminal(program, args, {
        env: { ...harness().env },
        question,
        answer,
        ...(before === undefined ? {} : { before }),
      })

    it('asks, and takes an empty answer for no', async () => {
      const id = await harness().shop.unknownPayment('asked')
      const args = ['settle', id, '--effect', 'charge', '--happened', '--reference', 'ch_1', ...reason]
      const { code, screen } = await on(args, /Continue\? \[y\/N\]/, '\n')
      expect(screen).toContain(id)
      expect(code).toBe(1)
      expect((await show(id)).state).toBe('unknown')
    })

    it('says that the row moved while it asked', async () => {
      const id = await harness().shop.unknownPayment('asked twice')
      const args = ['settle', id, '--effect', 'charge', '--happened', '--reference', 'ch_1', ...reason]
      const other = () => settle(id, '--effect', 'charge', '--happened', '--reference', 'ch_2')
      const { code, screen } = await on(args, /Continue\? \[y\/N\]/, 'y\n', other)
      expect(code, screen).toBe(4)
      expect(screen).toContain('has moved since it was read')
    })

    it('asks for nothing with --no-input', async () => {
      const id = await harness().shop.unknownPayment('no input')
      const args = ['settle', id, '--effect', 'charge', '--happened', '--reference', 'ch_1', '--no-input', ...reason]
      expect((await on(args, /never/, '')).code).toBe(2)
    })
  })
}

function parkedCases({ harness, run, json, show }: Desk): void {
  describe('parked rows', () => {
    it('are listed, noted and resumed, each with a result of its own', async () => {
      const ids = [await harness().shop.unknownPayment('parked 1'), await harness().shop.unknownPayment('parked 2')]
      for (const id of ids) await harness().shop.giveUp(id)
      expect((await json<AdminRow[]>('parked', 'list')).map(({ id }) => id)).toEqual(expect.arrayContaining(ids))
      const [first = ''] = ids
      expect((await run(['parked', 'note', first, '--reason', 'asked their support'])).code).toBe(0)
      expect((await show(first)).note).toBe('asked their support')
      expect((await run(['parked', 'resume', first, '--dry-run', ...reason])).code).toBe(0)
      expect((await show(first)).parked).toBe(true)
      const { code, stdout } = await run(['parked', 'resume', ...ids, noRow, ...reason, '--jsonl'])
      const results = linesOf<{ id: string; result: string }>(stdout)
      expect(results.map(({ id, result }) => [id, result])).toEqual([
        ...ids.map(id => [id, 'done']),
        [noRow, 'not-found'],
      ])
      expect(code).toBe(1)
      expect((await show(first)).parked).toBe(false)
    })
  })
}

function messageCases({ harness, run, json }: Desk): void {
  describe('messages', () => {
    it('of the outbox that were given up are listed and redriven', async () => {
      await harness().shop.parkedMessage('receipts')
      const before = await json<{ parked: number; lanes: number; byLane: LaneState[] }>('outbox', 'lanes')
      expect(before).toMatchObject({ parked: 1, lanes: expect.any(Number), partial: false })
      const [lane] = before.byLane.filter(each => each.parked.count > 0)
      expect(lane).toMatchObject({ parked: { count: 1, more: false }, behind: { count: 0, more: false } })
      const { stdout } = await run(['outbox', 'lanes'])
      expect(stdout).toMatch(/^parked +1$/m)
      expect(stdout).toMatch(/^lane +waiting +parked +behind parked +oldest +held by +for$/m)
      const [message] = await json<{ position: string }[]>('outbox', 'parked')
      expect(message).toMatchObject({
        topic: 'receipts',
        attempts: 1,
        cause: 'Error',
      })
      const redrive = ['outbox', 'redrive', message?.position ?? '', ...reason]
      expect((await run(redrive)).code).toBe(0)
      expect((await run(redrive)).code).toBe(3)
      expect(await json('outbox', 'parked')).toEqual([])
    })

    it('of the outbox are skipped when that is confirmed, and the audit names what their consumer misses', async () => {
      await harness().shop.parkedMessage('letters')
      // What other cases have redriven may be parked again beside it.
      const letters = async () =>
        (await json<ParkedMessageView[]>('outbox', 'parked')).filter(({ topic }) => topic === 'letters')
      const { position = '', dedupId = '' } = (await letters())[0] ?? {}
      const skip = ['outbox', 'skip', position, ...reason]
      expect((await run(skip)).code).toBe(2)
      const looked = await run([...skip, '--dry-run'])
      expect(looked).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`${position}  to letters, dedup id ${dedupId}`),
      })
      expect(await letters()).toHaveLength(1)
      expect((await run([...skip, '--yes'])).code).toBe(0)
      expect((await run([...skip, '--yes'])).code).toBe(3)
      expect(await letters()).toEqual([])
      const entries = await json<{ act: string; detail: string; refused?: string | null }[]>('audit')
      expect(entries).toContainEqual(
        expect.objectContaining({
          act: 'outbox.skip',
          detail: expect.stringContaining(`letters, dedup id ${dedupId}`),
        }),
      )
    })

    it('that a consumer gave up are listed and redriven', async () => {
      expect(await harness().shop.parkedDelivery('evt_1')).toMatchObject({ kind: 'parked' })
      const [message] = await json<{ id: string }[]>('inbox', 'parked', '--consumer', 'billing')
      expect(message).toMatchObject({ consumer: 'billing', operation: 'orders.take', redriving: false })
      expect((await run(['inbox', 'redrive', message?.id ?? '', ...reason])).code).toBe(0)
      expect(await json('inbox', 'parked')).toMatchObject([{ redriving: true }])
      for (const id of [noRow, '0']) expect((await run(['inbox', 'redrive', id, ...reason])).code).toBe(3)
    })
  })
}

function lookUpCases({ program, harness, run }: Desk): void {
  describe('look-up', () => {
    it('is due now for a row, and refused when it was asked for a moment ago', async () => {
      const id = await harness().shop.unknownPayment('look up')
      expect((await run(['unknown', 'look-up', id, ...reason])).code).toBe(0)
      expect((await run(['unknown', 'look-up', id, ...reason])).code).toBe(4)
    })

    it('of many shows the plan, has the number typed, and has a result for each', async () => {
      const scope = 'many'
      const ids: string[] = []
      for (let n = 0; n < 25; n += 1) ids.push(await harness().shop.unknownPayment(`bulk ${n}`, { scope }))
      const args = ['unknown', 'look-up', '--all-matching', '--scope', scope, ...reason]
      const dry = await run([...args, '--dry-run', '--json'])
      expect(JSON.parse(dry.stdout)).toMatchObject({ act: 'look up', matched: 25, sample: expect.any(Array) })
      const refused = await onTerminal(program, args, {
        env: { ...harness().env },
        question: /Type 25 to continue/,
        answer: 'y\n',
      })
      expect(refused.code).toBe(1)
      const { code, stdout } = await run([...args, '--yes', '--jsonl'])
      const results = linesOf<{ id: string; result: string }>(stdout)
      expect(code).toBe(0)
      expect(results.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
      expect(new Set(results.map(({ result }) => result))).toEqual(new Set(['done']))
    })

    it('that is interrupted ends with 130 and says how far it came', async () => {
      const scope = 'interrupted'
      for (let n = 0; n < 120; n += 1) await harness().shop.unknownPayment(`cut ${n}`, { scope })
      let sent = false
      const { code, stderr, stdout } = await run(
        ['unknown', 'look-up', '--all-matching', '--scope', scope, '--yes', ...reason, '--jsonl'],
        {
          onOutput: (written, kill) => {
            if (sent || written.stdout === '') return
            sent = true
            kill('SIGINT')
          },
        },
      )
      const results = stdout.trim().split('\n').length
      expect(code, stderr).toBe(130)
      expect(results).toBeLessThan(120)
      expect(stderr).toContain(`${results} of 120 were done`)
    })
  })
}

function importCases({ program, harness, run, show }: Desk): void {
  describe('an import', () => {
    it('settles what the export says happened, proposes what it says did not, and leaves out the rest', async () => {
      const scope = 'imported'
      const ids = [0, 1, 2].map(n => harness().shop.unknownPayment(`import ${n}`, { scope }))
      const rows = await Promise.all(ids.map(async id => show(await id)))
      await harness().age(3_600_000)
      const lines = rows.map(
        ({ openEffect }, n) => `${openEffect?.downstreamKey},${['paid', 'failed', 'pending'][n]},ch_${n}`,
      )
      program.write('export.csv', ['client_ref,state,charge', ...lines, 'unknown-to-us,paid,ch_9'].join('\n'))
      const map = 'match=downstream_key:client_ref,status=state,happened=paid,did-not-happen=failed,reference=charge'
      const { code, stdout, stderr } = await run([
        'settle',
        '--import',
        'export.csv',
        '--map',
        map,
        '--yes',
        '--jsonl',
        ...reason,
      ])
      expect(code, stderr).toBe(0)
      const results = Object.fromEntries(
        stdout
          .trim()
          .split('\n')
          .map(line => {
            const { id, result } = JSON.parse(line) as { id: string; result: string }
            return [id, result]
          }),
      )
      expect(results).toEqual({ [rows[0]?.id ?? '']: 'done', [rows[1]?.id ?? '']: 'second-person-needed' })
      expect((await show(rows[0]?.id ?? '')).state).toBe('pending')
      expect((await show(rows[2]?.id ?? '')).state).toBe('unknown')
    })
  })
}
