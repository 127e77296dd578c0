/** One key in many tenants and operations at once, with different bodies: each must get its own answer. */
import { Agent } from 'node:http'
import { carried, type Done } from '../app/operations.ts'
import { type Attack, inParallel, post } from './enemy.ts'

const tenants = 150
const atOnce = 100

export const mixedTenants: Attack = async target => {
  const { random, name, signal, store } = target
  const routes = carried(store, ['transfers', 'hits', 'atomic', 'phased'])
  const key = `shared-${random.between(1, 1e9)}`
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  await inParallel({ count: tenants * routes.length * 2, atOnce, signal }, async index => {
    const account = `${name}-${index % tenants}`
    const route = routes[Math.floor(index / tenants) % routes.length] ?? 'hits'
    // The body differs in the second round.
    const body = JSON.stringify({ turn: Math.floor(index / (tenants * routes.length)) })
    const reply = await post(target, { route, key, account, body, agent })
    if (reply?.status !== 201) return
    const { account: answered }: Done = JSON.parse(reply.text)
    if (answered !== account) target.untrue(`${account} got the answer of ${answered}`)
  })
  agent.destroy()
}
