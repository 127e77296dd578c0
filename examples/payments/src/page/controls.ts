/** What the buttons of the page do to the world around the shop: its provider, its database, and whole scenes of the story. */
import { spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Context, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { Env } from '../api.ts'
import { parseFault } from '../provider-faults.ts'
import type { Provider } from '../provider-process.ts'
import { scenes } from '../story/scenes.ts'

export interface ControlParts {
  readonly provider: Provider
  /** Nobody can write to the database for this long. Resolves when it has begun. */
  readonly pause: (ms: number) => Promise<void>
}

/** Longer than a request waits for its database, so that it is noticed. */
const pauseMs = 8_000
/** A scene takes about ten seconds; the longest waits for a quarantine. */
const sceneLimitMs = 120_000

export function controlRoutes(app: Hono<Env>, { provider, pause }: ControlParts): void {
  app.use('/play/*', sameOriginOnly)
  app.get('/play/world', async c => {
    const state = await provider.state().catch(() => undefined)
    return c.json({
      provider: state === undefined ? 'down' : (state.fault?.kind ?? 'up'),
      canKill: provider.pid !== undefined,
      scenes: scenes.map(({ title, premise }) => ({ title, premise })),
    })
  })
  app.post('/play/fault', async c => {
    const fault = parseFault(await c.req.json())
    if (fault === undefined) throw new HTTPException(400, { message: 'this is not a fault' })
    await provider.setFault(fault)
    return c.json({ fault })
  })
  app.post('/play/kill', c => {
    const { pid } = provider
    if (pid === undefined)
      throw new HTTPException(409, { message: 'another program started this provider: kill it there' })
    process.kill(pid, 'SIGKILL')
    return c.json({ killed: pid })
  })
  app.post('/play/pause', async c => {
    await pause(pauseMs)
    return c.json({ pausedMs: pauseMs })
  })
  app.post('/play/scenes/:at', c => playScene(c))
}

/** Any web page could send a request to a server on this machine. Only ours may kill things. */
async function sameOriginOnly(c: Context<Env>, next: () => Promise<void>): Promise<void> {
  const site = c.req.header('sec-fetch-site')
  const origin = c.req.header('origin')
  const isOurs =
    site === 'same-origin' || (site === undefined && (origin === undefined || origin === new URL(c.req.url).origin))
  if (!isOurs) throw new HTTPException(403, { message: 'only the page of the playground may do this' })
  await next()
}

/** A scene kills the API, so it has a shop of its own: another process, with its own provider and files. */
function playScene(c: Context<Env>): Response {
  const at = Number(c.req.param('at'))
  if (scenes[at] === undefined) throw new HTTPException(404, { message: `there are ${scenes.length} scenes` })
  const main = fileURLToPath(new URL('../story/main.ts', import.meta.url))
  const args = ['--import', 'tsx', '--conditions=latchkey-source', main, '--only', String(at + 1)]
  const story = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], timeout: sceneLimitMs })
  const stop = () => void story.kill()
  process.once('exit', stop)
  story.once('exit', () => process.off('exit', stop))
  // A reader that goes away ends the scene.
  c.req.raw.signal.addEventListener('abort', stop)
  return c.body(Readable.toWeb(story.stdout) as ReadableStream<Uint8Array>, 200, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
  })
}
