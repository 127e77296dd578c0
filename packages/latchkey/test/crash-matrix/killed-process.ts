/** A process that runs one operation and kills itself at a named point, at its first or second hit. */
import { openPlace } from '../processes/database.ts'
import { type Kind, runner } from './scenarios.ts'

const asked: { place: string; kind: Kind; label: string; point: string; hit: number } = JSON.parse(
  process.argv[2] ?? '{}',
)
let hits = 0
Reflect.set(globalThis, Symbol.for('latchkey.faultPoint'), (name: string) => {
  if (name !== asked.point) return
  hits += 1
  if (hits === asked.hit) process.kill(process.pid, 'SIGKILL')
})

const place = await openPlace(asked.place)
await runner(place)
  .run(asked.kind, asked.label)
  .catch(() => undefined)
process.exit(0)
