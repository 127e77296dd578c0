/** The worker of the guide, in a process of its own. With DIE_AT it kills itself at that moment of the engine. */
import { close, startWorker } from '../src/bullmq.ts'

const { REDIS_URL: url = '', DIE_AT: dieAt } = process.env
const arrive = (at: string): void => {
  if (at === dieAt) process.kill(process.pid, 'SIGKILL')
}
// Where the engine reports its moments to a test.
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), arrive)

const worker = startWorker({ url })
worker.on('error', console.error)
process.once('message', () => void close(worker).then(() => process.disconnect()))
// The test has ended, so nothing else would end this process.
process.once('disconnect', () => process.exit(0))
await worker.waitUntilReady()
process.send?.('ready')
