/**
 * A Lua script, and the names its body knows its keys and arguments by.
 *
 * The server runs a script from its first line to its last with no other command in between: what a script has read is still true where it
 * writes. So each transition is one script, with the time read from the server inside it.
 */
import { createHash } from 'node:crypto'
import type { Index, Part } from './layout.ts'

export interface Script {
  /**
   * `allow-oom`: also while the server is out of memory, so that work that is done can be recorded. `no-writes`: also on a server that takes no
   * writes. Empty: refused when memory is short, as a claim has to be.
   */
  readonly flags: '' | 'allow-oom' | 'no-writes'
  /** The keys, each under its own name. They are of one identity or of one bucket, so of one slot. */
  readonly parts: readonly Part[]
  readonly args: readonly string[]
  /** It counts only when the replicas have it that the store was told to wait for. Default: no. */
  readonly isReplicated?: true
  /** It also knows `now`, in milliseconds, and `time`, as the server tells it. */
  readonly body: string
}

/**
 * Many calls in one script, each with keys of its own: the calls of one turn of the event loop cost the server and the client little more than one. The
 * body decides one call. What goes wrong with one is its own error: the others are decided.
 */
export interface ScriptForMany extends Omit<Script, 'parts' | 'args'> {
  /** The row comes first. */
  readonly parts: readonly ['row', ...Index[]]
  /** How the arguments of one call are packed, for `struct.unpack`, and their names. The sixteen bytes of the id come first. */
  readonly each: { readonly format: string; readonly args: readonly string[] }
  /** What all calls share. It knows the time. */
  readonly shared: string
}

export interface LoadedScript {
  readonly text: string
  /** By it the server knows the script: two versions of the library have two names. */
  readonly sha: string
  readonly isReplicated: boolean
  readonly parts: readonly Part[]
}

/** `forwardMs`: a Lua expression that is added to the time, for tests. */
export function loadScript(script: Script | ScriptForMany, forwardMs: string | undefined): LoadedScript {
  const { flags, parts, isReplicated = false } = script
  const text = [
    flags === '' ? '#!lua' : `#!lua flags=${flags}`,
    `local time = redis.call('TIME')`,
    `local now = time[1] * 1000 + math.floor(time[2] / 1000)${forwardMs === undefined ? '' : ` + ${forwardMs}`}`,
    'each' in script ? linesForMany(script) : linesOf(script),
  ].join('\n')
  return { text, sha: createHash('sha1').update(text).digest('hex'), parts, isReplicated }
}

function linesOf({ parts, args, body }: Script): string {
  return [names('KEYS', parts), names('ARGV', args), body].join('\n')
}

function linesForMany({ parts, each, shared, body }: ScriptForMany): string {
  const keys = parts.map((_, at) => `KEYS[first + ${at}]`).join(', ')
  const args = each.args.join(', ')
  return `${shared}
local function decide(${parts.join(', ')}, ${args})
${body}
end
local replies, place = {}, 1
for first = 1, #KEYS, ${parts.length} do
  local ${args}
  ${args}, place = struct.unpack('${each.format}', ARGV[1], place)
  local isDecided, reply = pcall(decide, ${keys}, ${args})
  replies[#replies + 1] = isDecided and reply or { -1, type(reply) == 'table' and reply.err or tostring(reply) }
end
return replies`
}

function names(list: 'KEYS' | 'ARGV', ours: readonly string[]): string {
  if (ours.length === 0) return ''
  return `local ${ours.join(', ')} = ${ours.map((_, at) => `${list}[${at + 1}]`).join(', ')}`
}

/** What may be absent, as one argument: `given(name)` in the body. */
export function optional(value: string | undefined): string {
  return value === undefined ? '-' : `=${value}`
}

export const givenLua = `
local function given(argument)
  if argument:sub(1, 1) == '=' then return argument:sub(2) end
end`

/** Rounded up, so that nothing ends before its time. */
export function wholeMs(ms: number): string {
  return String(Math.ceil(ms))
}

export function optionalMs(ms: number | undefined): string {
  return ms === undefined ? '' : wholeMs(ms)
}
