/** The clients, as they are installed and as they are set up to retry a POST. */
import { CreateScheduleCommand, SchedulerClient } from '@aws-sdk/client-scheduler'
import axios, { type AxiosError } from 'axios'
import axiosRetry, { isNetworkError, isRetryableError } from 'axios-retry'
import got from 'got'
import type { Context } from 'hono'
import ky from 'ky'
import type { HttpOptions, OperationOptions } from 'latchkey'
import ModernTreasury from 'modern-treasury'
import { ofetch } from 'ofetch'
import OpenAI from 'openai'
import Stripe from 'stripe'
import { Agent, request, RetryAgent } from 'undici'

export interface Call {
  readonly url: string
  /** For the clients that make none. */
  readonly key: string
  /** False: as it is installed. */
  readonly setUp: boolean
}

export interface Client {
  readonly name: string
  /** Who makes the key, and where it is sent. */
  readonly keyFrom: string
  /** The option that makes it retry a POST; absent where it does so as it is. */
  readonly setUp?: string
  readonly key?: NonNullable<OperationOptions<Context>['key']>
  readonly http?: HttpOptions<Context>
  /** Sends one POST. Rejects where the client does, and for every status from 400 on. */
  send(call: Call): Promise<unknown>
}

const body = { amount: 1200 }

/** The libraries of OpenAI read `error` and nothing else of an error's body. */
const openaiShape: HttpOptions<Context> = {
  renderProblem: ({ code, detail }) => ({ body: { error: { type: 'idempotency_error', code, message: detail } } }),
}

export const clients: readonly Client[] = [
  {
    name: 'stripe-node',
    keyFrom: 'itself',
    http: { profile: 'stripe' },
    send({ url }) {
      const { hostname, port } = new URL(url)
      const stripe = new Stripe('sk_test_1', { host: hostname, port, protocol: 'http', telemetry: false })
      return stripe.customers.create({ name: 'Ann' })
    },
  },
  {
    name: 'openai',
    keyFrom: 'you',
    http: openaiShape,
    send({ url, key }) {
      const openai = new OpenAI({ apiKey: 'sk-1', baseURL: url })
      return openai.post('/orders', { body, headers: { 'Idempotency-Key': key } })
    },
  },
  {
    name: 'modern-treasury',
    keyFrom: 'itself',
    send({ url }) {
      const treasury = new ModernTreasury({ apiKey: 'key', organizationID: 'acme', baseURL: url })
      return treasury.counterparties.create({ name: 'Ann' })
    },
  },
  {
    name: 'AWS SDK (scheduler)',
    keyFrom: 'itself, in the body',
    key: async c => ((await c.req.json()) as { ClientToken?: string }).ClientToken, // what the SDK sends
    async send({ url }) {
      const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' }
      const scheduler = new SchedulerClient({ endpoint: url, region: 'eu-central-1', credentials })
      const target = { Arn: 'arn:aws:sqs:eu-central-1:1:q', RoleArn: 'arn:aws:iam::1:role/r' }
      const schedule = { Name: 'n', ScheduleExpression: 'rate(1 day)', Target: target }
      try {
        return await scheduler.send(new CreateScheduleCommand({ ...schedule, FlexibleTimeWindow: { Mode: 'OFF' } }))
      } finally {
        scheduler.destroy()
      }
    },
  },
  {
    name: 'ky',
    keyFrom: 'you',
    setUp: "`retry: { methods: ['post'] }`",
    send({ url, key, setUp }) {
      const retry = setUp ? { retry: { methods: ['post' as const] } } : {}
      return ky.post(url, { json: body, headers: { 'Idempotency-Key': key }, ...retry }).json()
    },
  },
  {
    name: 'got',
    keyFrom: 'you',
    setUp: "`retry: { methods: ['POST'] }`",
    send({ url, key, setUp }) {
      const retry = setUp ? { retry: { methods: ['POST' as const] } } : {}
      return got.post(url, { json: body, headers: { 'Idempotency-Key': key }, ...retry }).json()
    },
  },
  {
    name: 'axios + axios-retry',
    keyFrom: 'you',
    setUp: '`retryCondition: e => isNetworkError(e) \\|\\| isRetryableError(e)`',
    send({ url, key, setUp }) {
      const client = axios.create()
      const wider = { retryCondition: (error: AxiosError) => isNetworkError(error) || isRetryableError(error) }
      axiosRetry(client, setUp ? wider : {})
      return client.post(url, body, { headers: { 'Idempotency-Key': key } })
    },
  },
  {
    name: 'undici `RetryAgent`',
    keyFrom: 'you',
    setUp: "`methods: ['POST']`",
    async send({ url, key, setUp }) {
      const dispatcher = new RetryAgent(new Agent(), setUp ? { methods: ['POST'] } : {})
      try {
        const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key }
        const answer = await request(url, { method: 'POST', headers, body: JSON.stringify(body), dispatcher })
        const text = await answer.body.text()
        if (answer.statusCode < 400) return text
        throw Object.assign(new Error(text), { statusCode: answer.statusCode })
      } finally {
        await dispatcher.close()
      }
    },
  },
  {
    name: 'ofetch',
    keyFrom: 'you',
    setUp: '`retry: 3, retryDelay: 1000`',
    send({ url, key, setUp }) {
      const retry = setUp ? { retry: 3, retryDelay: 1_000 } : {}
      return ofetch(url, { method: 'POST', body, headers: { 'Idempotency-Key': key }, ...retry })
    },
  },
]
