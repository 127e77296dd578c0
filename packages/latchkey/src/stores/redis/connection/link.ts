/** Scripts on their way to the server: by the name of the script, and with its text where the name is not known. */
import type { RedisArgument, Reply } from '../../shared/redis/driver.ts'
import type { Sender } from '../../shared/redis/sender.ts'
import { isNoScript, storeError } from './errors.ts'
import { buckets, hexOf, keysOf } from './layout.ts'
import { hasWritten, type Replicas } from './replicas.ts'
import { type LoadedScript, loadScript, type Script } from './script.ts'

export interface Link {
  /** `id`: of an identity, in uuid spelling. */
  run(script: Script, id: string, args?: RedisArgument[]): Promise<Reply>
  /** `hex`: a bucket, or the place of a name. */
  runAt(script: Script, hex: string, args?: RedisArgument[]): Promise<Reply>
  /** In each bucket, in their order. */
  runInAll(script: Script, args?: RedisArgument[]): Promise<readonly Reply[]>
}

export interface LinkOptions {
  readonly sender: Sender
  readonly prefix: string
  readonly replicas?: Replicas | undefined
  readonly forwardMs: string | undefined
}

export function openLink({ sender, prefix, replicas, forwardMs }: LinkOptions): Link {
  const loaded = new Map<Script, LoadedScript>()

  function load(script: Script): LoadedScript {
    const known = loaded.get(script) ?? loadScript(script, forwardMs)
    loaded.set(script, known)
    return known
  }

  async function runAt(script: Script, hex: string, args: RedisArgument[] = []): Promise<Reply> {
    const ready = load(script)
    const keys = keysOf(prefix, hex, ready.parts)
    try {
      return await send(ready, keys, args)
    } catch (error) {
      throw storeError(error)
    }
  }

  /** A script that the server does not know has not run: its text goes after it, and the server knows it from then on. */
  async function send(script: LoadedScript, keys: string[], args: RedisArgument[]): Promise<Reply> {
    try {
      return await proven(script, sender.bySha(script, keys, args))
    } catch (error) {
      if (!isNoScript(error)) throw error
      return proven(script, sender.byText(script, keys, args))
    }
  }

  async function proven({ isReplicated }: LoadedScript, sent: Promise<unknown>): Promise<Reply> {
    // Not awaited before the reply, and a rejection of it is not left alone where the reply is one.
    const asked = isReplicated ? replicas?.proof() : undefined
    asked?.catch(() => {})
    // Scripts return nothing else.
    const reply = (await sent) as Reply
    const lack = asked !== undefined && hasWritten(reply) ? await asked : undefined
    if (lack !== undefined) throw lack
    return reply
  }

  return {
    runAt,
    run: (script, id, args) => runAt(script, hexOf(id), args),
    runInAll: (script, args) => Promise.all(buckets.map(bucket => runAt(script, bucket, args))),
  }
}
