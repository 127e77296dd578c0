// The story with all its scenes: it gets a NATS of its own, found or installed as for the tests, because one scene needs a broker.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { installMissing } from '../../test/servers/brokers/find-program.ts'
import { findNats, startNats } from '../../test/servers/nats/nats-server.ts'

installMissing(findNats, 'nats-server')
const found = findNats()
const server = found.kind === 'found' ? await startNats() : undefined
if (found.kind === 'missing') console.error(`the scene with a ledger is not played: ${found.why}`)
try {
  const flags = ['--quiet', ...(server === undefined ? [] : ['--broker', server.url])]
  const story = spawn('npm', ['run', '--silent', 'story', '--', ...flags], { stdio: 'inherit' })
  const [code]: unknown[] = await once(story, 'exit')
  // A proof without the scene is none.
  process.exitCode = server !== undefined && typeof code === 'number' ? code : 1
} finally {
  await server?.stop()
}
