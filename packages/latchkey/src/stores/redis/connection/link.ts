/** Scripts on their way to the server: by the name of the script, and with its text where the name is not known. */
import type { RedisArgument, Reply } from '../../shared/redis/driver.ts'
import type { Sender } from '../../shared/redis/sender.ts'
import { isNoScript, storeError } from './errors.ts'
import { buckets, hexOf, keysOf, rowKeysOf } from './layout.ts'
import { hasWritten, type Replicas } from './replicas.ts'
import { listOf } from './reply.ts'
import { type LoadedScript, loadScript, type Script, type ScriptForMany } from './script.ts'
import { type CallsTogether, gatherCalls, type RunForMany } from './together.ts'

export interface Link {
  /** `id`: of an identity, in uuid spelling. */
  run(script: Script, id: string, args?: RedisArgument[]): Promise<Reply>
  /** `hex`: a bucket, or the place of a name. */
  runAt(script: Script, hex: string, args?: RedisArgument[]): Promise<Reply>
  /** In each bucket, in their order. */
  runInAll(script: Script, args?: RedisArgument[]): Promise<readonly Reply[]>
  /** Calls of one kind: those of one turn of the event loop share a script. */
  together<Item, Result>(calls: CallsTogether<Item, Result>): (item: Item) => Promise<Result>
}

export interface LinkOptions {
  readonly sender: Sender
  readonly prefix: string
  /** A script may have keys of one bucket only. */
  readonly isCluster: boolean
  readonly replicas?: Replicas | undefined
  readonly forwardMs: string | undefined
}

export function openLink({ sender, prefix, isCluster, replicas, forwardMs }: LinkOptions): Link {
  const loaded = new Map<Script | ScriptForMany, LoadedScript>()

  function load(script: Script | ScriptForMany): LoadedScript {
    const known = loaded.get(script) ?? loadScript(script, forwardMs)
    loaded.set(script, known)
    return known
  }

  async function runAt(script: Script, hex: string, args: RedisArgument[] = []): Promise<Reply> {
    const ready = load(script)
    const { reply, asked } = await send(ready, keysOf(prefix, hex, ready.parts), args)
    const lack = hasWritten(reply) ? await asked : undefined
    if (lack !== undefined) throw lack
    return reply
  }

  function forMany(script: ScriptForMany): RunForMany {
    const ready = load(script)
    const keysOfRows = rowKeysOf(prefix, ready.parts)
    return async calls => {
      const { reply, asked } = await send(ready, keysOfRows(calls), [Buffer.concat(calls)])
      const replies = listOf(reply)
      return { replies, lack: asked !== undefined && replies.some(isWritten) ? await asked : undefined }
    }
  }

  /** A script that the server does not know has not run: its text goes after it, and the server knows it from then on. */
  async function send(script: LoadedScript, keys: string[], args: RedisArgument[]): Promise<Sent> {
    const sentOn = sender.connection
    try {
      return await withProof(script, sender.bySha(script, keys, args))
    } catch (error) {
      if (!isNoScript(error)) throw storeError(error, sentOn !== sender.connection)
    }
    try {
      return await withProof(script, sender.byText(script, keys, args))
    } catch (error) {
      throw storeError(error, sentOn !== sender.connection)
    }
  }

  async function withProof({ isReplicated }: LoadedScript, sent: Promise<unknown>): Promise<Sent> {
    // Not awaited before the reply, and a rejection of it is not left alone where the reply is one.
    const asked = isReplicated ? replicas?.proof() : undefined
    asked?.catch(() => {})
    // Scripts return nothing else.
    return { reply: (await sent) as Reply, asked }
  }

  return {
    runAt,
    run: (script, id, args) => runAt(script, hexOf(id), args),
    runInAll: (script, args) => Promise.all(buckets.map(bucket => runAt(script, bucket, args))),
    together: gatherCalls({ forMany, inOneWrite: sender.inOneWrite, isCluster }),
  }
}

/** Of one call among many: what was seen or refused is a list, or 0. */
function isWritten(reply: Reply): boolean {
  return typeof reply === 'number' && reply !== 0
}

interface Sent {
  readonly reply: Reply
  /** Whether replicas have it, where that counts. */
  readonly asked: ReturnType<Replicas['proof']> | undefined
}
