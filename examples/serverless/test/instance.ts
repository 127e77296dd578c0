/** One instance of a function: a process that gets requests as messages, as a platform's runtime hands them in. */
import * as functions from '../src/functions.ts'

export type FunctionName = keyof typeof functions

export interface Invocation {
  readonly name: FunctionName
  readonly key: string
  readonly body: unknown
}

process.on('message', ({ name, key, body }: Invocation) => {
  void answer(name, key, body).then(answered => process.send?.(answered))
})
process.send?.('ready')

async function answer(name: FunctionName, key: string, body: unknown): Promise<object> {
  if (name === 'runWorkers') {
    await functions.runWorkers()
    return { status: 200 }
  }
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key, 'X-Account': 'acme' }
  const request = new Request('http://function.test/', { method: 'POST', headers, body: JSON.stringify(body) })
  const response = await functions[name](request)
  return {
    status: response.status,
    replayed: response.headers.get('Idempotent-Replayed') === 'true',
    body: await response.json(),
  }
}
