/** What operators look at, on any store. */
import { describe, expect, it } from 'vitest'
import type { AdminRow, Overview } from 'latchkey/admin'
import { type Desk, noRow, reason } from './desk.ts'

export function lookCases(desk: Desk): void {
  statusCases(desk)
  keyCases(desk)
  listCases(desk)
  auditCases(desk)
  workCases(desk)
}

function statusCases({ harness, run, json }: Desk): void {
  describe('status', () => {
    it('counts what is unknown and says that no worker runs', async () => {
      await harness().shop.unknownRefund('status')
      const overview = await json<Overview>('status')
      expect(overview.unknown.count).toBeGreaterThan(0)
      const { code, stdout } = await run(['status'])
      expect(code).toBe(0)
      expect(stdout).toMatch(/^unknown {3}\d+, oldest/m)
      expect(stdout).toMatch(/^workers {3}none has run/m)
    })

    it('exits with 1 if something is older than allowed', async () => {
      expect((await run(['status', '--fail-older-than', '0ms'])).code).toBe(1)
      expect((await run(['status', '--fail-older-than', '100d'])).code).toBe(0)
    })
  })
}

function keyCases({ harness, run, json, show }: Desk): void {
  describe('a key', () => {
    it('is found by scope, operation and the key on stdin', async () => {
      const id = await harness().shop.unknownRefund('find me')
      const args = ['key', 'find', '--scope', 'acme', '--operation', 'refunds.create', '--json']
      const { code, stdout, stderr } = await run(args, { input: 'find me\n' })
      expect(code).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject([{ id, state: 'unknown', operation: 'refunds.create' }])
      expect(stdout + stderr).not.toContain('find me')
    })

    it('is found by the reference that its handler recorded', async () => {
      const id = await harness().shop.unknownPayment('referred', { reference: 'ord_8841' })
      expect(await json('key', 'find', '--reference', 'ord_8841')).toMatchObject([{ id, effect: 'charge' }])
    })

    it('that is not there is 3, and one that is missing on stdin is 2', async () => {
      const args = ['key', 'find', '--scope', 'acme', '--operation', 'refunds.create']
      expect((await run(args, { input: 'never sent' })).code).toBe(3)
      expect((await run(args)).code).toBe(2)
      expect((await run(['key', 'show', noRow])).code).toBe(3)
    })

    it('is shown with its open effect, and its timeline', async () => {
      const id = await harness().shop.unknownPayment('shown')
      const shown = await show(id)
      expect(shown).toMatchObject({
        id,
        state: 'unknown',
        openEffect: { name: 'charge' },
        version: expect.stringMatching(/^\d+\.\d+$/),
      })
      const { stdout } = await run(['key', 'show', id, '--timeline'])
      expect(stdout).toMatch(/open effect +charge, downstream key [0-9a-f-]{36}/)
      expect(stdout).toMatch(/effect +charge/)
    })

    it('is forgotten only with a second person', async () => {
      const id = await harness().shop.completedRefund('forget me')
      const { code, stderr } = await run(['key', 'forget', id, '--yes', ...reason])
      expect(code).toBe(4)
      expect(stderr).toContain('needs a second person')
      expect(await json('proposals', 'list')).toContainEqual(
        expect.objectContaining({ id, act: 'forget', state: 'open' }),
      )
    })
  })
}

function listCases({ harness, run, json }: Desk): void {
  describe('unknown list', () => {
    it('has the rows that match, and groups them', async () => {
      const id = await harness().shop.unknownPayment('listed', { scope: 'globex' })
      const rows = await json<AdminRow[]>('unknown', 'list', '--scope', 'globex')
      expect(rows).toMatchObject([{ id, scope: 'globex', operation: 'payments.create', effect: 'charge' }])
      const { stdout } = await run(['unknown', 'list', '--scope', 'globex', '--jsonl'])
      expect(
        stdout
          .trim()
          .split('\n')
          .map(line => (JSON.parse(line) as AdminRow).id),
      ).toEqual([id])
      expect(await json('unknown', 'list', '--scope', 'nobody')).toEqual([])
      for (const grouped of [[], ['--group-by', 'cause']]) {
        expect((await run(['unknown', 'list', ...grouped, '--fail-older-than', '0ms'])).code).toBe(1)
        expect((await run(['unknown', 'list', ...grouped, '--fail-older-than', '9d'])).code).toBe(0)
      }
      expect(await json('unknown', 'list', '--group-by', 'cause')).toContainEqual(
        expect.objectContaining({ operation: 'payments.create', count: expect.any(Number) }),
      )
    })
  })
}

function auditCases({ harness, run }: Desk): void {
  describe('the audit', () => {
    it('is followed', async () => {
      const id = await harness().shop.unknownPayment('followed')
      let act: Promise<unknown> | undefined
      const { code, stdout } = await run(['audit', '--follow', '--jsonl'], {
        onOutput({ stdout: lines, stderr: talk }, kill) {
          if (talk.includes('following')) act ??= run(['parked', 'note', id, '--reason', 'followed'])
          if (lines.includes(id)) kill('SIGINT')
        },
      })
      await act
      expect(code).toBe(130)
      expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({ id, reason: 'followed' })
    })
  })
}

function workCases({ run }: Desk): void {
  describe('work', () => {
    it('runs one turn of what needs no code, and refuses what does', async () => {
      const { code, stdout } = await run(['work', '--once', '--json'])
      expect(code).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ sweeper: { failures: 0 }, reaper: { failures: 0 } })
      expect((await run(['work', '--once', '--only', 'relay'])).code).toBe(2)
    })

    it('runs until it is told to end, and drains', async () => {
      const { code, stderr } = await run(['work'], {
        onOutput: (written, kill) => void (written.stderr.includes('running') && kill('SIGTERM')),
      })
      expect(code).toBe(130)
      expect(stderr).toContain('nothing is left half-done')
    })
  })
}
