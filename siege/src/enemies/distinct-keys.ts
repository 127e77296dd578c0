/** A flood of new keys. */
import { Agent } from 'node:http'
import { type Attack, inParallel, post } from './enemy.ts'

const count = 3_000
const atOnce = 200

export const distinctKeys: Attack = async target => {
  const { random, name, signal } = target
  const from = random.between(1, 1e9)
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  await inParallel({ count, atOnce, signal }, index => {
    const route = index % 2 === 0 ? 'hits' : 'transfers'
    return post(target, { route, key: `flood-${from}-${index}`, account: name, agent })
  })
  agent.destroy()
}
