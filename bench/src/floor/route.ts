/**
 * The leanest durable guard: a yardstick for Latchkey, not a library. It claims with a fence and a claim id, runs the
 * handler, stores the answer, and sends it after the commit. bench/README.md says what it leaves out.
 */
import { hash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type pg from 'pg'
import type { Work } from '../server/order.ts'
import { type PlainRequest, type PlainRoute, reportOnce, sendJson } from '../server/plain.ts'
import { openBatchConnection } from './batch-connection.ts'
import { createTable, type Entry } from './statements.ts'

interface Exchange extends Entry {
  readonly request: PlainRequest
  readonly response: ServerResponse
}

const idBytes = 16

export async function floorRoute(pool: pg.Pool, { handle }: Work): Promise<PlainRoute> {
  await createTable(pool)
  const fail = ({ response }: Exchange, error: unknown) => {
    reportOnce(error)
    sendJson(response, 500, '{"error":"failed"}')
  }
  const batches = await openBatchConnection<Exchange>(await pool.connect(), {
    won(exchange) {
      handle(exchange.request.body).then(
        receipt => {
          exchange.answer = `201 ${JSON.stringify(receipt)}`
          batches.complete(exchange)
        },
        (error: unknown) => fail(exchange, error),
      )
    },
    taken({ response }, { sameBody, answer }) {
      if (!sameBody) sendJson(response, 422, '{"error":"key reused"}')
      else if (answer === undefined) sendJson(response, 409, '{"error":"in progress"}')
      else sendAnswer(response, answer)
    },
    completed: ({ response, answer }) => sendAnswer(response, answer),
    failed: fail,
  })
  const claimId = randomIds()
  return (request, response) => {
    const id = shortHash(`bench\0orders.create\0${request.headers['idempotency-key']}`)
    batches.claim({ id, claimId: claimId(), fingerprint: shortHash(request.raw), answer: '', request, response })
  }
}

function sendAnswer(response: ServerResponse, answer: string): void {
  sendJson(response, Number(answer.slice(0, 3)), answer.slice(4))
}

/** By way of a string: asked for a buffer, the hash costs twice as much. */
function shortHash(data: string | Buffer): Buffer {
  return Buffer.from(hash('sha256', data, 'binary'), 'binary').subarray(0, idBytes)
}

/** Many at once: a call costs more than the bytes. */
function randomIds(): () => Buffer {
  let bytes = randomBytes(4_096)
  let used = 0
  return () => {
    if (used === bytes.length) {
      bytes = randomBytes(bytes.length)
      used = 0
    }
    used += idBytes
    return bytes.subarray(used - idBytes, used)
  }
}
