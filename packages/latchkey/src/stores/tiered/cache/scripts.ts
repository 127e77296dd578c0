/**
 * The scripts of the cache, each of one key. A key of a row holds one of three things, which differ in their first byte: an entry; a ticket, whose
 * holder may replace it by an entry; or a tombstone.
 *
 * A ticket is there before its holder reads the database, and an entry replaces that very ticket. So whatever takes the ticket away in between stops
 * the entry: a tombstone, its time, an eviction, FLUSHALL, a restart.
 */
import { createHash } from 'node:crypto'
import type { ScriptText } from '../../shared/redis/sender.ts'

export const tombstoneMark = 'x'
export const ticketMark = 't'

/** The value and the time it has left. Nil: there was nothing of this epoch, and the ticket is there now. */
export const lookUpScript: ScriptText = script(`
local found = redis.call('GET', KEYS[1])
local ticket, ticketMs, epoch = ARGV[1], ARGV[2], ARGV[3]
if found and (found:byte() ~= 1 or found:sub(2, 37) == epoch) then return { found, redis.call('PTTL', KEYS[1]) } end
redis.call('SET', KEYS[1], ticket, 'PX', ticketMs)
return false`)

/** 1: the entry replaced the ticket. */
export const fillScript: ScriptText = script(`
local ticket, entry, livesMs = ARGV[1], ARGV[2], ARGV[3]
if redis.call('GET', KEYS[1]) ~= ticket then return 0 end
redis.call('SET', KEYS[1], entry, 'PX', livesMs)
return 1`)

/** 1: the tombstone was there, and it has been since it was set: nobody else sets this one. */
export const buryScript: ScriptText = script(`
local tombstone, tombstoneMs = ARGV[1], ARGV[2]
local wasThere = redis.call('GET', KEYS[1]) == tombstone
redis.call('SET', KEYS[1], tombstone, 'PX', tombstoneMs)
return wasThere and 1 or 0`)

/** The epoch. One that was lost is replaced by another, so that no entry from before is used again. */
export const epochScript: ScriptText = script(`
local epoch = redis.call('GET', KEYS[1])
if epoch then return epoch end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`)

export const raiseScript: ScriptText = script(`
redis.call('SET', KEYS[1], ARGV[1])
return 1`)

/** Nil: the scope may be stored. */
export const isExcludedScript: ScriptText = script(`return redis.call('GET', KEYS[1])`)

export const excludeScript: ScriptText = script(`
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return 1`)

function script(text: string): ScriptText {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}
