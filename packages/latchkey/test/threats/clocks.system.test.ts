/** What a process does whose clock is wrong by a day, beside others whose clocks are right. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { ask, hasRun, killAt, type Shop, startShop, twoShops } from '../checklists/shops.ts'
import { eventually } from '../processes/fleet.ts'

const day = 24 * 3_600_000
const turns = { everyMs: 200 } as const

describePostgres('a process whose clock is wrong by a day', database => {
  const scene = twoShops(() => database.url)

  describe.each([
    ['ahead', day],
    ['behind', -day],
  ])('%s', (name, offMs) => {
    let wrong: Shop
    beforeAll(async () => {
      const workers = { only: ['sweeper', 'reaper'], sweeper: turns, reaper: turns } as const
      const program = encodeURIComponent(`const real = Date.now; Date.now = () => real() + ${offMs}`)
      wrong = await startShop({ ...scene.argument, workers }, ['--import', `data:text/javascript,${program}`])
    })
    afterAll(() => wrong.stop())

    it('replays what others stored, and stores for as long as they do', async () => {
      const [right] = scene.shops
      for (const [first, second] of [
        [right, wrong],
        [wrong, right],
      ] as const) {
        const asked = { path: '/payments', key: `${name}-${first === right ? 'right' : 'wrong'}` }
        const answer = await ask(first, asked)
        expect(answer).toMatchObject({ status: 201, replayed: false })
        expect(await ask(second, asked)).toMatchObject({ status: 201, replayed: true, text: answer.text })
        const expiresAt = Date.parse(answer.headers.get('idempotency-key-expires-at') ?? '')
        expect(Math.abs(expiresAt - Date.now() - day)).toBeLessThan(120_000)
      }
    })

    it('takes no live lease over, and its workers move and delete nothing', async () => {
      const label = `slow-beside-${name}`
      const asked = { path: '/payments', key: label, body: { label, slow: 2_000 } }
      const first = ask(scene.shops[0], asked)
      await hasRun(scene, label)
      expect(await ask(wrong, asked)).toMatchObject({ status: 409, code: 'in-progress' })
      expect((await first).status).toBe(201)
      expect(await ask(wrong, asked)).toMatchObject({ status: 201, replayed: true })
      expect(await scene.place.executions(label)).toBe(1)
      await wrong.flush()
      expect([...wrong.counted('zombie_key'), ...wrong.counted('ttl_pruned')]).toEqual([])
    })

    it('still sweeps a lease that is dead', async () => {
      const label = `dead-beside-${name}`
      await killAt(scene, label, { path: '/payments', key: label, body: { label, slow: 9_000 } })
      await eventually(
        async () => wrong.counted('zombie_key').length,
        swept => swept === 1,
      )
    })
  })
})
