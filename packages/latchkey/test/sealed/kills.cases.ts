/** Rewrapping and erasing in a process that is killed half-way, and then again. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { forkProgram } from '../../../../test/programs/program.ts'
import type { BatchArgument, FromBatch } from './batch-process.ts'
import type { RawDatabase } from './databases.ts'
import { fromAToB, underA, underB } from './keys.ts'
import { deliverOne, finds, shopsOn } from './scene.ts'

/** Processes start slowly on a busy machine. */
const patienceMs = 120_000

export function killCases(openDatabase: () => Promise<RawDatabase>): void {
  const { raw, open } = shopsOn(openDatabase)

  it(
    'rewraps the rest when it was killed half-way',
    async () => {
      const shop = open(underA)
      await shop.runAll()
      await shop.tell()
      await killedBehindTwo({ place: raw().place, work: 'rewrap' })
      const { read, rewritten } = await open(fromAToB).latchkey.rewrap()
      expect(rewritten).toBeGreaterThan(0)
      expect(rewritten).toBeLessThan(read)
      const after = open(underB)
      expect(await after.runAll()).toBe(0)
      await deliverOne(after)
    },
    patienceMs,
  )

  it(
    'erases the rest when it was killed half-way',
    async () => {
      const shop = open()
      await shop.runAll()
      await deliverOne(shop)
      await killedBehindTwo({ place: raw().place, work: 'erase' })
      const { records } = await shop.latchkey.list({ scope: 'acme' })
      // Small, large, unknown, note, parcel and export, without the two that went before the kill.
      expect(records).toHaveLength(4)
      const rest = await shop.latchkey.erase({ scope: 'acme' })
      expect(rest).toMatchObject({ rows: 2, openRows: 2 })
      expect((await shop.latchkey.list({ scope: 'acme' })).records).toHaveLength(2)
      // Of the two open rows: their descriptions, and the input of one.
      expect(finds(await raw().dump())).toBe(2)
    },
    patienceMs,
  )
}

async function killedBehindTwo(argument: BatchArgument): Promise<void> {
  const child = await forkProgram(new URL('./batch-process.ts', import.meta.url), [JSON.stringify(argument)])
  const ended = once(child, 'exit')
  await behindTwo(child)
  child.kill('SIGKILL')
  await ended
}

function behindTwo(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: FromBatch) => {
      if (message.batches === 2) resolve()
    })
    child.once('exit', code => reject(new Error(`the process ended by itself with ${code}`)))
  })
}
