/** Worker processes on one database, and rows whose owners are dead. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { forkProgram } from '../../../../test/programs/program.ts'
import { fingerprintInput } from '../../src/engine/fingerprint/fingerprint.ts'
import { identify } from '../../src/engine/request.ts'
import type { Recovery, Store } from '../../src/ports/store.ts'
import type { FromWorker, Work, WorkerArgument } from './worker-process.ts'

export interface WorkerProcess {
  /** The identities counted under a metric, in order. */
  counted(metric: string): (string | undefined)[]
  /** Starts a guarded request in that process. */
  request(work: Work): void
  /** SIGTERM; how it ended. */
  terminate(): Promise<{ code: number | null; signal: string | null; drained: boolean | undefined }>
  kill(): Promise<void>
  readonly exited: Promise<void>
}

export async function startWorker(argument: WorkerArgument): Promise<WorkerProcess> {
  const child = await forkProgram(new URL('./worker-process.ts', import.meta.url), [JSON.stringify(argument)])
  const told: FromWorker[] = []
  child.on('message', (message: FromWorker) => void told.push(message))
  const exited = once(child, 'exit').then(() => undefined)
  await Promise.race([once(child, 'message'), exited])
  return {
    counted: metric => told.flatMap(one => (one.kind === 'counted' && one.metric === metric ? [one.identity] : [])),
    request: work => void child.send(work),
    async terminate() {
      await end(child, 'SIGTERM', exited)
      const drained = told.find(one => one.kind === 'ended')?.drained
      return { code: child.exitCode, signal: child.signalCode, drained }
    },
    kill: () => end(child, 'SIGKILL', exited),
    exited,
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals, exited: Promise<void>): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal)
  await exited
}

/** A row whose owner died right after its claim. Its lease has expired when this returns. */
export async function abandonedRow(store: Store, work: Work, recovery: Recovery = 'resume'): Promise<string> {
  const operation = recovery === 'resume' ? 'work' : 'hold'
  const identity = identify({ scope: 'acme', operation, key: work.label })
  const claimed = await store.claim({
    identity,
    claimId: crypto.randomUUID(),
    fingerprint: fingerprintInput(work),
    recovery,
    leaseMs: 1,
    expiresInMs: 3_600_000,
    description: undefined,
    ...(recovery === 'resume' ? { work: { version: 1, input: JSON.stringify(work) } } : {}),
  })
  if (claimed.kind !== 'won') throw new Error(`${work.label} is taken`)
  return identity.id
}
