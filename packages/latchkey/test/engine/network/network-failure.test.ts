import http from 'node:http'
import https from 'node:https'
import type net from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { classifyNetworkFailure } from '../../../src/engine/rules/network-failure.ts'
import {
  closedPort,
  type Closing,
  failureOf,
  fetchFailure,
  listen,
  silentPort,
  spoilingProxy,
  testCertificate,
} from './sockets.ts'

const closings: Closing[] = []
afterEach(async () => {
  for (const close of closings.splice(0)) await close()
})

async function serve(server: net.Server): Promise<number> {
  const port = await listen(server)
  closings.push(() => {
    server.close()
    if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function')
      server.closeAllConnections()
  })
  return port
}

function expectFailure(error: unknown, verdict: 'never-left' | 'ambiguous'): void {
  expect({ verdict: classifyNetworkFailure(error), error }).toEqual({ verdict, error })
}

describe('a call that never left', () => {
  it('is a refused connection', async () => {
    const port = await closedPort()
    expectFailure(await failureOf({ port }), 'never-left')
    expectFailure(await fetchFailure(`http://127.0.0.1:${port}/`), 'never-left')
  })

  it('is a connection refused at both addresses of a name', async () => {
    const port = await closedPort()
    const both = [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]
    const error = await failureOf({
      port,
      host: 'two.test',
      autoSelectFamily: true,
      lookup: (_host, _options, found) => found(null, both),
    })
    expect(error).toBeInstanceOf(AggregateError)
    expectFailure(error, 'never-left')
    expectFailure(new TypeError('fetch failed', { cause: error }), 'never-left')
  })

  it('is a name that does not resolve', async () => {
    expectFailure(await fetchFailure('http://latchkey-test.invalid/'), 'never-left')
    expectFailure(await failureOf({ host: 'latchkey-test.invalid', port: 80 }), 'never-left')
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'is a certificate we do not trust, and the %s server has seen no request',
    async version => {
      let requests = 0
      const server = https.createServer(
        { ...testCertificate, minVersion: version, maxVersion: version },
        (_, response) => {
          requests += 1
          response.end()
        },
      )
      const port = await serve(server)
      expectFailure(await failureOf({ tls: true, port }), 'never-left')
      expectFailure(await fetchFailure(`https://127.0.0.1:${port}/`), 'never-left')
      // An accepted request afterwards proves that the count would have risen.
      await new Promise(resolve => {
        https.get({ host: '127.0.0.1', port, rejectUnauthorized: false }, resolve)
      })
      expect(requests).toBe(1)
    },
  )

  it('is a handshake without a common version', async () => {
    const port = await serve(https.createServer({ ...testCertificate, maxVersion: 'TLSv1.2' }))
    expectFailure(await failureOf({ tls: true, port, minVersion: 'TLSv1.3', rejectUnauthorized: false }), 'never-left')
  })

  it('is a connect timeout', async () => {
    const { port, close } = await silentPort()
    closings.push(close)
    const error = await fetchFailure(`http://127.0.0.1:${port}/`)
    expect(error).toMatchObject({ cause: { code: 'UND_ERR_CONNECT_TIMEOUT' } })
    expectFailure(error, 'never-left')

    const silentAndRefused = [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]
    const lookup: net.LookupFunction = (_host, _options, found) => found(null, silentAndRefused)
    expectFailure(await failureOf({ port, host: 'two.test', autoSelectFamily: true, lookup }), 'never-left')
  })
})

describe('a call that may have arrived', () => {
  it('is a reset on a reused keep-alive connection', async () => {
    const port = await serve(resettingOnReuse())
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    closings.push(() => agent.destroy())
    expectFailure(await firstFailure(() => failureOf({ port, agent })), 'ambiguous')
  })

  it('is a reset on a connection that fetch kept', async () => {
    const port = await serve(resettingOnReuse())
    expectFailure(await firstFailure(() => fetchFailure(`http://127.0.0.1:${port}/`)), 'ambiguous')
  })

  it('is a read timeout', async () => {
    const port = await serve(http.createServer(() => {}))
    expectFailure(await failureOf({ port, timeout: 100 }), 'ambiguous')
    expectFailure(await fetchFailure(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(200) }), 'ambiguous')
  })

  it('is an abort after the request was sent', async () => {
    const abort = new AbortController()
    const port = await serve(http.createServer(() => abort.abort()))
    expectFailure(await fetchFailure(`http://127.0.0.1:${port}/`, { signal: abort.signal }), 'ambiguous')
  })

  it('is an answer that breaks off', async () => {
    const server = http.createServer((request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => request.socket.destroy())
    })
    const port = await serve(server)
    expectFailure(await failureOf({ port }), 'ambiguous')
    expectFailure(await fetchFailure(`http://127.0.0.1:${port}/`), 'ambiguous')
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('is a %s answer spoiled on the way back', async version => {
    let requests = 0
    const server = https.createServer(
      { ...testCertificate, minVersion: version, maxVersion: version },
      (_, response) => {
        requests += 1
        response.end('charged')
      },
    )
    const proxy = await serve(spoilingProxy(await serve(server), () => requests > 0))
    expectFailure(await failureOf({ tls: true, port: proxy, rejectUnauthorized: false }), 'ambiguous')
    expect(requests).toBe(1)
  })
})

/** Answers the first request of a connection and resets it at the second, when the request has arrived. */
function resettingOnReuse(): http.Server {
  const used = new WeakSet<net.Socket>()
  return http.createServer((request, response) => {
    if (used.has(request.socket)) return void request.socket.resetAndDestroy()
    used.add(request.socket)
    response.end('first')
  })
}

/** A client is free to open a new connection, so a reuse may take a few requests. */
async function firstFailure(attempt: () => Promise<unknown>): Promise<unknown> {
  const requestsMax = 50
  for (let requests = 0; requests < requestsMax; requests++) {
    const failure = await attempt().catch(() => undefined)
    if (failure !== undefined) return failure
  }
  throw new Error('no connection was reused')
}
