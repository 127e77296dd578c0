import { expect, it } from 'vitest'
import { cacheFaults, type RedisCache } from '../../test/servers/redis/redis-cache.ts'
import { randomFrom } from '../../torture/src/random.ts'
import { harmCache } from './harm-cache.ts'

/** It waits for nothing. */
const random = { ...randomFrom(1, 'cache'), between: () => 0 }

function cacheOf(harm: RedisCache['harm']): RedisCache {
  return { url: 'redis://nowhere', harm, stop: async () => {} }
}

it('does everything once to the cache, however soon it is told to stop', async () => {
  const done: string[] = []
  const counts = await harmCache(
    cacheOf(async fault => void done.push(fault)),
    random,
  ).stop()
  expect(done.toSorted()).toEqual(cacheFaults.toSorted())
  expect(counts).toEqual({ flushed: 1, killed: 1, frozen: 1 })
})

it('tells at the end, and not before, that the cache did not come back', async () => {
  let meet = () => {}
  const met = new Promise<void>(resolve => {
    meet = resolve
  })
  const harm = harmCache(
    cacheOf(async () => {
      meet()
      throw new Error('the cache is gone')
    }),
    random,
  )
  await met
  // By now Node would have ended a process in which nobody had taken the failure.
  await new Promise(setImmediate)
  await expect(harm.stop()).rejects.toThrow('the cache is gone')
})
