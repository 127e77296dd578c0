/** A console with a queue as long as a page shows: for a browser that is measured while it scrolls. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { consoleFiles, loopbackConsole } from '@latchkey/console'
import { createLatchkey, type Latchkey, outcomeUnknown, silentTelemetry } from 'latchkey'
import { nodeAdmin } from 'latchkey/admin'
import { memoryStore } from 'latchkey/stores/memory'

export interface ServedConsole {
  /** Lets one browser in, once. */
  readonly link: string
  close(): Promise<void>
}

const root = fileURLToPath(new URL('../../..', import.meta.url))

export async function serveConsole(rows: number): Promise<ServedConsole> {
  execFileSync('npm', ['run', 'console', '--silent'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  const latchkey = createLatchkey({ store: memoryStore(), telemetry: silentTelemetry, scope: () => 'none' })
  await addUnknown(latchkey, rows)
  let host = ''
  const { handler, query } = loopbackConsole({
    latchkey,
    person: { name: 'bench', role: 'operator' },
    host: () => host,
    files: consoleFiles(),
  })
  const server = createServer(nodeAdmin(handler)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  host = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  return {
    link: `http://${host}/${query}`,
    async close() {
      server.close()
      server.closeAllConnections()
      await latchkey.close()
    },
  }
}

async function addUnknown(latchkey: Latchkey<unknown, unknown>, rows: number): Promise<void> {
  const transfers = latchkey.guarded('transfers.create', {
    onFailure: 'hold',
    describe: input => `€ ${(input as { at: number }).at}.00 order ${(input as { at: number }).at}`,
  })
  const lost = () => Promise.reject(outcomeUnknown(new Error('read timeout after 20 s')))
  for (let at = 0; at < rows; at++) {
    const request = { scope: `tenant-${at % 7}`, key: `transfer-${at}`, input: { at } }
    await transfers.run(request, lost).catch(() => {})
  }
}
