import { execFile, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Whom the server runs as: PostgreSQL refuses to be root. Empty when we are not root ourselves. */
export type Account = { uid?: number; gid?: number }

export function serverAccount(): Account {
  if (process.getuid?.() !== 0) return {}
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const user = users.find(fields => fields[0] === name)
    if (user !== undefined) return { uid: Number(user[2]), gid: Number(user[3]) }
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user "postgres" nor "nobody" to run it as')
}

/** A private directory below which all that the server writes is kept, its socket and its log too. */
export function makeDirectory(account: Account): { path: string; remove: () => void } {
  // A root's TMPDIR may lie where the server's user cannot go; /tmp is open to all.
  const parent = account.uid === undefined ? tmpdir() : '/tmp'
  const path = realpathSync(mkdtempSync(join(parent, 'latchkey-postgres-')))
  if (account.uid !== undefined && account.gid !== undefined) chownSync(path, account.uid, account.gid)
  const letGo = cleanUpAfterUs(path)
  return {
    path,
    remove() {
      rmSync(path, { recursive: true, force: true, maxRetries: 5 })
      letGo()
    },
  }
}

function cleanUpAfterUs(directory: string): () => void {
  const script = fileURLToPath(new URL('clean-up-after.sh', import.meta.url))
  const watcher = spawn('/bin/sh', [script, directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  })
  watcher.unref()
  return () => watcher.stdin.end()
}

export async function initialise(initdb: string, directory: string, account: Account): Promise<string> {
  const dataDir = join(directory, 'data')
  // --no-sync concerns the empty cluster only; the server itself runs with fsync on.
  const args = ['-D', dataDir, '-U', 'postgres', '-A', 'trust', '--no-sync', '--locale=C', '-E', 'UTF8']
  await promisify(execFile)(initdb, args, { ...account, cwd: directory, env: serverEnv(), timeout: 120_000 })
  return dataDir
}

/** PGDATA, PGPORT and the like belong to the person at the keyboard, not to this server. */
export function serverEnv(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))
  return { ...Object.fromEntries(kept), LC_ALL: 'C' }
}
