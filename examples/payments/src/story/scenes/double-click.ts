import type { Scene } from '../scene.ts'

export const doubleClick: Scene = {
  title: 'Double click',
  premise: 'The same payment is sent twice at once.',
  async play({ wish, send, provider }) {
    // Slow enough for the two requests to overlap.
    await provider.setFault({ kind: 'slow', ms: 400, requests: 1 })
    const payment = wish('/payments')
    await Promise.all([send(payment), send(payment)])
  },
}
