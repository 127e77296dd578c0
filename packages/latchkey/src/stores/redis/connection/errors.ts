/** What an error of Redis, or of its client, means for us. */
import { errorText, isLatchkeyError, LatchkeyError } from '../../../ports/errors.ts'

/** The server does not have the script: after a restart, a failover, SCRIPT FLUSH. Known before anything of it ran. */
export const isNoScript = (error: unknown): boolean => startsWith(error, 'NOSCRIPT')

/** The memory limit is reached, and the script was not begun. */
export const isOutOfMemory = (error: unknown): boolean => startsWith(error, 'OOM')

/** A replica, or a master without enough of them. */
export const isReadOnly = (error: unknown): boolean => startsWith(error, 'READONLY') || startsWith(error, 'NOREPLICAS')

/** The keys of a script are on several servers, and it was not begun. */
export const isCrossSlot = (error: unknown): boolean => startsWith(error, 'CROSSSLOT')

/** Both clients begin the message of an error that the server sent with the server's word. */
function startsWith(error: unknown, word: string): boolean {
  return errorText(error).startsWith(word)
}

/** The server refused the call as it was: nothing of it ran. Anything else may have been executed, and its reply was lost. */
function wasRefused(error: unknown): boolean {
  return refusals.test(errorText(error))
}

/** The last four are of a cluster whose slots are moving, and of a server that runs another script for too long. */
const refusals =
  /^(OOM|READONLY|NOREPLICAS|NOAUTH|NOPERM|WRONGPASS|LOADING|MASTERDOWN|CLUSTERDOWN|MISCONF|CROSSSLOT|MOVED|ASK|TRYAGAIN|BUSY)\b/

/** Every error leaves this store in this shape. `wasResent`: an earlier sending of the same call may have run, whatever the last one was told. */
export function storeError(error: unknown, wasResent: boolean): LatchkeyError {
  if (isLatchkeyError(error)) return error
  return new LatchkeyError(
    'store-unavailable',
    `Redis failed: ${errorText(error).replace(/\.$/, '')}${cureOf(error)}`,
    {
      cause: error,
      sent: wasRefused(error) && !wasResent ? false : undefined,
    },
  )
}

function cureOf(error: unknown): string {
  if (isOutOfMemory(error)) return '. Raise maxmemory, or shorten retentions: new keys are refused until there is room'
  if (startsWith(error, 'NOPERM')) return '. docs/guides/redis.md lists the commands that the user needs'
  return ''
}
