/** A process whose connections end in one phase, in every way. Its exit code says whether it outlived them. */
import pg from 'pg'
import { endings, startEndingServer, type Ending } from './ending-server.ts'
import { type Phase, type PhaseName, phases } from './ending-phases.ts'

const phase: Phase = phases[process.argv[2] as PhaseName]
for (const ending of endings) await play(ending)
console.log(`outlived ${endings.join(', ')}`)
process.exit(0)

async function play(ending: Ending): Promise<void> {
  const server = await startEndingServer({ ...phase.script, ending })
  const ends: Promise<void>[] = []
  class WatchedClient extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super(config)
      // Not with events.once: it would listen to 'error', too.
      ends.push(new Promise(resolve => this.once('end', () => resolve())))
    }
  }
  const config = { host: '127.0.0.1', port: server.port, user: 'nobody', database: 'none' }
  const pool = new pg.Pool({ ...config, max: 1, Client: WatchedClient })
  const ended = async () => {
    await Promise.all(ends)
    await new Promise(resolve => setImmediate(resolve))
  }
  const connectAlone = async () => {
    const client = new WatchedClient(config)
    await client.connect()
    return client
  }
  await phase.act({ server, pool, ended, connectAlone }).catch(() => {})
  server.end()
  await ended()
  await server.close()
}
