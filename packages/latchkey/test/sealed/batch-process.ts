/** A process that rewraps or erases in small batches, and says how far it is. Started by fork with a JSON argument, and killed on the way. */
import { openPlace } from '../processes/database.ts'
import { fromAToB } from './keys.ts'
import { openShop } from './scene.ts'

export interface BatchArgument {
  readonly place: string
  readonly work: 'rewrap' | 'erase'
}

/** How many batches are done. */
export interface FromBatch {
  readonly batches: number
}

const argument: BatchArgument = JSON.parse(process.argv[2] ?? '{}')
const { store } = await openPlace(argument.place)
const { latchkey } = openShop(store, argument.work === 'rewrap' ? fromAToB : undefined)
process.once('disconnect', () => process.exit(1))

let batches = 0
async function onProgress(): Promise<void> {
  process.send?.({ batches: (batches += 1) } satisfies FromBatch)
  // Behind the second batch it waits for its end.
  if (batches === 2) await new Promise(() => {})
}

if (argument.work === 'rewrap') await latchkey.rewrap({ batch: 3, onProgress })
else await latchkey.erase({ scope: 'acme', batch: 1, onProgress })
