import type { Scene } from '../scene.ts'

export const doubleClick: Scene = {
  title: 'Double click',
  premise: 'The same payment, twice at once.',
  async play({ wish, send, provider }) {
    // Slow enough for the two to meet.
    await provider.setFault({ kind: 'slow', ms: 400, requests: 1 })
    const payment = wish('/payments')
    await Promise.all([send(payment), send(payment)])
  },
}
