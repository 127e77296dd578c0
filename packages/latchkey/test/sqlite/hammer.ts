/**
 * One of several processes on one file: claims and completes even keys, runs odd ones as atomic operations, several at a time.
 * Says each thing on standard output once it is acknowledged, with a blocking write, so that a kill cannot lose the line.
 * Arguments: file, number of keys, how many at a time.
 */
import { writeSync } from 'node:fs'
import Database from 'libsql'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { atomicRequest, claimRequest, outcome } from './requests.ts'

const [path = '', keys = '0', atATime = '4'] = process.argv.slice(2)
const store = sqliteStore({ path, open: file => new Database(file), waitMs: 20_000, transactionMs: 20_000 })
const { transactor } = store
const say = (...words: (string | number)[]) => void writeSync(1, `${words.join(' ')}\n`)

async function guarded(key: number): Promise<void> {
  const request = claimRequest(key)
  const result = await store.claim(request)
  if (result.kind !== 'won') return
  say('won', key, request.claimId)
  const done = await store.complete(result.claim, outcome(request.claimId), 1_000)
  say(done === 'written' ? 'done' : 'lost', key, request.claimId)
}

async function atomic(key: number): Promise<void> {
  const request = atomicRequest(key)
  let found = ''
  const end = await transactor.transaction(async tx => {
    const reserved = await transactor.reserve(tx, request)
    found = reserved.kind
    if (reserved.kind !== 'free') return 'rollback'
    tx.run('INSERT INTO orders VALUES (?1)', [`${key} ${request.claimId}`])
    await new Promise(resolve => setTimeout(resolve, 1))
    const recorded = await transactor.record(tx, request, outcome(request.claimId), reserved.fence)
    return recorded === 'recorded' ? 'commit' : 'rollback'
  })
  if (found === 'free') say(end.kind === 'committed' ? 'done' : 'lost', key, request.claimId)
}

await store.migrate()
say('ready')
let next = 0
async function work(): Promise<void> {
  while (next < Number(keys)) {
    const key = next
    next += 1
    await (key % 2 === 0 ? guarded(key) : atomic(key))
  }
}
await Promise.all(Array.from({ length: Number(atATime) }, work))
await store.close()
say('end')
