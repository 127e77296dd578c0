/** A postman between provider and shop, who holds webhooks back until the scene delivers them. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Provider } from '../provider-process.ts'

/** A webhook as the provider signed it. */
export interface Letter {
  readonly headers: Record<string, string>
  readonly body: string
}

export interface Postman {
  readonly letters: readonly Letter[]
  /** The status of the shop's answer. */
  deliver(letter: Letter): Promise<number>
  goHome(): Promise<void>
}

const answerWithinMs = 10_000

export async function hirePostman(provider: Provider): Promise<Postman> {
  const { webhook } = await provider.state()
  if (webhook === null) throw new Error('the shop did not register for webhooks')
  const letters: Letter[] = []
  const office = createServer((request, response) => {
    void receive(request).then(letter => {
      letters.push(letter)
      response.writeHead(204).end()
    })
  })
  office.listen(0, '127.0.0.1')
  await once(office, 'listening')
  const address = office.address()
  const port = typeof address === 'object' ? address?.port : undefined
  await provider.setWebhook({ ...webhook, url: `http://127.0.0.1:${port}` })
  return {
    letters,
    async deliver(letter) {
      const signal = AbortSignal.timeout(answerWithinMs)
      return (await fetch(webhook.url, { method: 'POST', ...letter, signal })).status
    },
    async goHome() {
      await provider.setWebhook(webhook)
      office.close()
      office.closeAllConnections()
    },
  }
}

async function receive(request: IncomingMessage): Promise<Letter> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const signature = Object.entries(request.headers).flatMap(([name, value]) =>
    name.startsWith('webhook-') ? [[name, String(value)]] : [],
  )
  return {
    headers: { 'content-type': 'application/json', ...Object.fromEntries(signature) },
    body: Buffer.concat(chunks).toString(),
  }
}
