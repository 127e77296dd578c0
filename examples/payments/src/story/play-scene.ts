/** Plays one scene, asks everything once more, and reads what ledger and tables say about it. */
import type { WebhookTarget } from '../charge.ts'
import { type Answer, type Client, newKey, type Wish } from './client.ts'
import { type Facts, factsOf } from './facts.ts'
import type { Play, Scene } from './scene.ts'
import type { Stage } from './stage.ts'
import { complaintsAbout } from './verdict.ts'
import { until } from './waiting.ts'

export interface Performance {
  readonly scene: Scene
  readonly facts: readonly Facts[]
  /** Empty: it ended as it must. */
  readonly complaints: readonly string[]
  readonly seconds: number
}

export interface Telling {
  tell(line: string): void
  saw(answer: Answer): void
  happened(who: string, what: string): void
}

export interface Theatre extends Telling {
  readonly stage: Stage
  readonly client: Client
  /** An amount that nobody had before. */
  newAmount(): number
}

export async function playScene(theatre: Theatre, scene: Scene): Promise<Performance> {
  const { client, stage } = theatre
  const { provider } = stage
  const startedMs = performance.now()
  const wishes: Wish[] = []
  const answers: Answer[] = []
  const complaints: string[] = []
  const facts: Facts[] = []
  const { webhook } = await provider.state()
  try {
    await scene.play(playFor(theatre, { wishes, answers, complaints }))
    await calmDown(stage, webhook)
    for (const wish of wishes.filter(({ rightful }) => rightful)) await askTwice(theatre, wish, answers)
  } catch (error) {
    complaints.push(error instanceof Error ? error.message : String(error))
    await calmDown(stage, webhook)
  }
  try {
    for (const wish of wishes) facts.push(await factsOf({ client, provider }, wish, answers))
  } catch (error) {
    complaints.push(`ledger and tables cannot be read: ${String(error)}`)
  }
  complaints.push(...facts.flatMap(complaintsAbout))
  return { scene, facts, complaints, seconds: (performance.now() - startedMs) / 1_000 }
}

interface Noted {
  readonly wishes: Wish[]
  readonly answers: Answer[]
  readonly complaints: string[]
}

function playFor(theatre: Theatre, { wishes, answers, complaints }: Noted): Play {
  const { stage, client, newAmount, tell, happened } = theatre
  const { provider } = stage
  const note = (answer: Answer) => {
    answers.push(answer)
    theatre.saw(answer)
    return answer
  }
  return {
    stage,
    provider,
    client,
    tell,
    happened,
    wish(path, like = {}) {
      const wish = { path, account: 'acme', key: newKey(), amount: newAmount(), rightful: true, ...like }
      wishes.push(wish)
      return wish
    },
    send: async (wish, signal) => note(await client.send(wish, signal)),
    sendUntil: (wish, isEnd) => sendUntil({ client, note, isEnd }, wish),
    sendUntilDone: wish => sendUntil({ client, note, isEnd: ({ status }) => status === 201 }, wish),
    charged: async ({ account, amount }) =>
      (await provider.ledger()).some(charge => charge.account === account && charge.amount === amount),
    expect(isSo, sentence) {
      if (!isSo) complaints.push(`not so: ${sentence}`)
    },
  }
}

interface Patience {
  readonly client: Client
  readonly isEnd: (answer: Answer) => boolean
  note(answer: Answer): Answer
}

async function sendUntil({ client, note, isEnd }: Patience, wish: Wish): Promise<Answer> {
  let last: Answer | undefined
  await until(`${wish.path} has its answer`, async () => {
    const answer = await client.send(wish)
    if (answer.status !== last?.status || answer.text !== last?.text) note(answer)
    last = answer
    return isEnd(answer)
  })
  if (last === undefined) throw new Error(`${wish.path} was not sent`)
  return last
}

/** Every scene begins with a provider in order. */
async function calmDown({ provider }: Stage, webhook: WebhookTarget | null): Promise<void> {
  await provider.setFault(null)
  await provider.setBooks(true)
  // The API that was started again has asked for webhooks itself, with another secret.
  if ((await provider.state()).webhook === null) await provider.setWebhook(webhook)
}

/** Whatever happened: from now on it is the same answer, each time. */
async function askTwice({ client, saw }: Theatre, wish: Wish, answers: Answer[]): Promise<void> {
  for (const answer of [await client.send(wish), await client.send(wish)]) {
    answers.push(answer)
    saw(answer)
    if (answer.status !== 201) throw new Error(`${wish.path} is answered with ${answer.status} in the end, not 201`)
  }
}
