/** One key, used by thousands of requests at once, each on its own connection. */
import { Agent } from 'node:http'
import { type Attack, post } from './enemy.ts'

const callers = 3_000

export const hotKeys: Attack = async target => {
  const { random, name } = target
  const route = random.pick(['hits', 'transfers'] as const)
  const key = `hot-${random.between(1, 1e9)}`
  const agent = new Agent({ maxSockets: callers })
  const headers = { 'x-work-ms': '500' }
  await Promise.all(Array.from({ length: callers }, () => post(target, { route, key, account: name, headers, agent })))
  agent.destroy()
}
