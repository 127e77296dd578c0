// Run by a test as a process of its own, to be killed: what it started has to go as well.
import { startPostgres } from './postgres.ts'

const server = await startPostgres()
console.log(server.dataDir)
setInterval(() => undefined, 60_000)
