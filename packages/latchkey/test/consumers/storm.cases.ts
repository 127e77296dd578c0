/** Three consumers at once, each killed as soon as it has come by its moment and replaced by the next: every line between delivery and acknowledgement. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeOwnPostgres } from '../../../../test/servers/describe-postgres.ts'
import { openPlace, type Place } from '../processes/database.ts'
import type { BrokerName } from './brokers/all.ts'
import type { Kind } from './consumer-process.ts'
import { consumerProcesses } from './consumer-processes.ts'

const messages = 400
const workers = 3
const deathsMin = 30
/** At the same time in one process. */
const concurrency = 4
const limitMs = 600_000

const around = (inside: readonly string[]) => [
  'consumer:received',
  ...inside,
  'consumer:before-settle',
  'consumer:after-settle',
]
const atomicMoments = around(['handler', 'atomic:before-commit', 'atomic:after-commit'])
const guardedMoments = around(['claim:before', 'claim:after', 'handler', 'finish:before', 'finish:after'])
const momentsOf = (kind: Kind) => (kind === 'atomic' ? atomicMoments : guardedMoments)
/** Each moment as often: the first time, and later ones. */
const deathsOf = (kind: Kind) => Math.ceil(deathsMin / momentsOf(kind).length) * momentsOf(kind).length

export function itSurvivesAStorm(broker: BrokerName, url: () => string): void {
  describeOwnPostgres('in a storm', own => {
    let place: Place
    beforeAll(async () => {
      place = await openPlace(own.server.url)
      await place.migrate()
    })
    afterAll(() => place.close())
    const processes = consumerProcesses('stormed', () => ({ broker, url: url(), placeName: own.server.url, place }))

    async function countsOf(kind: Kind): Promise<readonly number[]> {
      const ids = await processes.publish(kind, messages)
      const moments = momentsOf(kind)
      const deaths = Array.from({ length: deathsOf(kind) }, (_, index) => ({
        moment: moments[index % moments.length] ?? '',
        nth: 1 + Math.floor(index / moments.length),
      }))
      const worker = async () => {
        for (let death = deaths.shift(); death !== undefined; death = deaths.shift()) {
          await processes.startAndDie(kind, death)
        }
      }
      await Promise.all(Array.from({ length: workers }, worker))
      // After the last death, not beside it: one that lives books all that is left while another joins its group, which then never comes by its moment.
      for (let survivor = 0; survivor < workers; survivor++) await processes.start(kind)
      return processes.countsOf(kind, ids)
    }

    it('book 400 messages once each in their transactions', { timeout: limitMs }, async () => {
      expect(await countsOf('atomic')).toEqual(Array.from({ length: messages }, () => 1))
    })

    it('run 400 messages, and one of them again only where a process died', { timeout: limitMs }, async () => {
      const counts = await countsOf('rerun')
      expect(counts.filter(times => times > 0)).toHaveLength(messages)
      const again = counts.reduce((sum, times) => sum + times - 1, 0)
      expect(again).toBeLessThanOrEqual(deathsOf('rerun') * concurrency)
    })

    it('never run a message twice that must not run again', { timeout: limitMs }, async () => {
      const counts = await countsOf('hold')
      expect(Math.max(...counts)).toBe(1)
      expect(counts.filter(times => times === 0).length).toBeLessThanOrEqual(deathsOf('hold') * concurrency)
    })
  })
}
