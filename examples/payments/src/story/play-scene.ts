/** Plays one scene, sends every request twice more, and reads the ledger and the tables. */
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
  /** Empty: it ended correctly. */
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
  /** An amount that no other wish has. */
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
    complaints.push(`cannot read the ledger and the tables: ${String(error)}`)
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
      if (!isSo) complaints.push(`expected: ${sentence}`)
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
  await until(`${wish.path} is answered`, async () => {
    const answer = await client.send(wish)
    if (answer.status !== last?.status || answer.text !== last?.text) note(answer)
    last = answer
    return isEnd(answer)
  })
  if (last === undefined) throw new Error(`${wish.path} was not sent`)
  return last
}

/** Every scene starts with a provider without faults. */
async function calmDown({ provider }: Stage, webhook: WebhookTarget | null): Promise<void> {
  await provider.setFault(null)
  await provider.setBooks(true)
  // A restarted API has registered for webhooks itself, with another secret.
  if ((await provider.state()).webhook === null) await provider.setWebhook(webhook)
}

/** Whatever happened, the answer must be 201 from now on. */
async function askTwice({ client, saw }: Theatre, wish: Wish, answers: Answer[]): Promise<void> {
  for (const answer of [await client.send(wish), await client.send(wish)]) {
    answers.push(answer)
    saw(answer)
    if (answer.status !== 201) throw new Error(`${wish.path} must end with 201 (got ${answer.status})`)
  }
}
