/** Latchkey on plain node:http: the Express adapter asks for no more than Node's own request and response. */
import type { ServerResponse } from 'node:http'
import { captureVerify, idempotent } from 'latchkey/http/express'
import type { Backend } from './backends/backend.ts'
import { atomicOperation, guardedOperation, type Options } from './operations.ts'
import type { Work } from './order.ts'
import { type PlainRequest, type PlainRoute, reportOnce, sendJson, sendReceipt } from './plain.ts'

export function guardedRoute(backend: Backend, { handle }: Work, options?: Options<PlainRequest>): PlainRoute {
  return mounted(
    idempotent(guardedOperation<PlainRequest>(backend, options), async (request, response) =>
      sendReceipt(asNode(response), await handle(request.body)),
    ),
  )
}

export function atomicRoute(backend: Backend, { handle }: Work): PlainRoute {
  return mounted(
    idempotent(atomicOperation<PlainRequest>(backend), async (request, response, { tx }) =>
      sendReceipt(asNode(response), await handle(request.body, backend.insertIn(tx))),
    ),
  )
}

export function ownTransactionRoute(backend: Backend, { handle }: Work): PlainRoute {
  return async (request, response) =>
    sendReceipt(response, await backend.transaction(insert => handle(request.body, insert)))
}

type Middleware = (request: PlainRequest, response: ServerResponse, next: (error?: unknown) => void) => void

function mounted(middleware: Middleware): PlainRoute {
  return (request, response) => {
    captureVerify(request, response, request.raw)
    middleware(request, response, error => {
      reportOnce(error)
      sendJson(response, 500, '{"error":"failed"}')
    })
  }
}

/** The adapter hands back the very response that it was given. */
function asNode(response: object): ServerResponse {
  return response as ServerResponse
}
