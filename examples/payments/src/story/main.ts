// npm run story                         eight failure scenarios, run against the payments API and its provider, with their results
// npm run story -- --quiet              one line per scene
// npm run story -- --only 3             one of them
// npm run story -- --store postgres://… on PostgreSQL, in an empty database
// npm run story -- --broker nats://…    with a ledger that books the payments, and a ninth scene, in which it is killed
//
// Exits with 0 if every scene ended with exactly the intended charges, and with 1 otherwise.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { client } from './client.ts'
import { openBooks } from './books.ts'
import { playScene, type Performance } from './play-scene.ts'
import type { Scene } from './scene.ts'
import { scenes } from './scenes.ts'
import { killedLedger } from './scenes/killed-ledger.ts'
import { countLine, openScreen, type Screen } from './screen.ts'
import { openStage, type Stage } from './stage.ts'

/** Long enough for the late charge of one scene to arrive, and for look-ups to find it. */
const quarantineMs = 6_000
/** A story takes about a minute. After the first limit no scene is started; after the second the story is aborted. */
const lastBeginMs = 90_000
const storyLimitMs = 170_000
const firstAmount = 1_400

const { quiet, store, broker, only } = readFlags()
const directory = mkdtempSync(join(tmpdir(), 'latchkey-story-'))
const screen = openScreen({ quiet, stream: process.stdout })
const limit = setTimeout(() => {
  console.error(`the story did not end within ${storyLimitMs / 1_000} s`)
  process.exit(1)
}, storyLimitMs)
process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
// The processes of the stage exit with this one.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(1))

screen.tell('starting the provider and the API')
const stage = await openStage({ directory, store, broker, quarantineMs })
const books = broker === undefined ? undefined : await openBooks(broker, stage)
try {
  const all = books === undefined ? scenes : [...scenes, killedLedger(books)]
  process.exitCode = await tellStory(stage, screen, only === undefined ? all : all.slice(only - 1, only))
} finally {
  await books?.close()
  await stage.stop()
  clearTimeout(limit)
}

interface StoryFlags {
  readonly quiet: boolean
  readonly store: string | undefined
  readonly broker: string | undefined
  /** The number of a scene, from 1. */
  readonly only: number | undefined
}

function readFlags(): StoryFlags {
  try {
    const text = { type: 'string' } as const
    const options = { quiet: { type: 'boolean', default: false }, store: text, broker: text, only: text } as const
    const { quiet, store, broker, only } = parseArgs({ options }).values
    if (only !== undefined && scenes[Number(only) - 1] === undefined)
      throw new Error(`--only must be the number of a scene, from 1 to ${scenes.length} (got ${only})`)
    return { quiet, store, broker, only: only === undefined ? undefined : Number(only) }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(2)
  }
}

function notPlayed(scene: Scene): Performance {
  const complaints = [`not played: the scenes before it took longer than ${lastBeginMs / 1_000} s`]
  return { scene, facts: [], complaints, seconds: 0 }
}

async function tellStory(
  on: Stage,
  { tell, saw, happened, ...shown }: Screen,
  played: readonly Scene[],
): Promise<number> {
  const startedMs = performance.now()
  let amount = firstAmount
  const theatre = { stage: on, client: client(() => on.url), newAmount: () => (amount += 1), tell, saw, happened }
  const performances: Performance[] = []
  for (const [index, scene] of played.entries()) {
    shown.open(index + 1, scene)
    const inTime = performance.now() - startedMs < lastBeginMs
    const performed = inTime ? await playScene(theatre, scene) : notPlayed(scene)
    performances.push(performed)
    await shown.close(performed, index + 1)
  }
  const failed = performances.filter(({ complaints }) => complaints.length > 0).length
  const facts = performances.flatMap(performed => performed.facts)
  const strangers = (await on.provider.ledger()).length - facts.flatMap(({ charges }) => charges).length
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0)
  shown.print(
    `\n${played.length} ${played.length === 1 ? 'scene' : 'scenes'} in ${seconds} s: ${countLine(facts)}; ${failed} failed`,
  )
  if (strangers > 0) shown.print(`charges in the ledger without a scene: ${strangers}`)
  return failed === 0 && strangers === 0 ? 0 : 1
}
