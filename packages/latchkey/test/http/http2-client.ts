/** One request over HTTP/2 without TLS, and whether its connection still serves the next one. */
import { connect, type OutgoingHttpHeaders } from 'node:http2'

export interface Http2Request {
  readonly method?: string
  readonly path: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Uint8Array
}

export interface Http2Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  /** The status of a GET of the same path after it, on the same connection. */
  readonly next: number
}

export async function sendOverHttp2(port: number, request: Http2Request): Promise<Http2Answer> {
  const session = connect(`http://127.0.0.1:${port}`)
  // The streams report what breaks the connection.
  session.on('error', () => undefined)
  const ask = ({ method = 'POST', path, headers = {}, body }: Http2Request) =>
    new Promise<Omit<Http2Answer, 'next'>>((resolve, reject) => {
      const stream = session.request({ ':method': method, ':path': path, ...headers })
      let answer: { status: number; headers: Http2Answer['headers'] } | undefined
      let text = ''
      const finish = () => (answer === undefined ? reject(new Error('no answer')) : resolve({ ...answer, body: text }))
      stream.on('response', ({ ':status': status = 0, ...rest }) => {
        answer = { status, headers: Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, textOf(v)])) }
      })
      stream.on('data', chunk => (text += String(chunk)))
      // A server that stops reading resets the stream after its response.
      stream.on('error', () => undefined)
      // Not `close`, which waits for data that this side can never send.
      stream.on('end', finish)
      stream.on('close', finish)
      stream.end(body)
    })
  try {
    const answer = await ask(request)
    const { status } = await ask({ method: 'GET', path: request.path })
    return { ...answer, next: status }
  } finally {
    session.destroy()
  }
}

function textOf(value: string | string[] | number | undefined): string | string[] | undefined {
  return typeof value === 'number' ? String(value) : value
}
