/** The load generator as a process of its own, so that it takes no time from who measures, and its own cost is known. */
import { type Load, runLoad } from './load.ts'

process.on('message', message => void answer(message as Load))
process.on('disconnect', () => process.exit(0))
process.send?.('ready')

async function answer(load: Load): Promise<void> {
  try {
    process.send?.({ result: await runLoad(load) })
  } catch (error) {
    process.send?.({ error: String(error) })
  }
}
