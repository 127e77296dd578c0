import { expect, it } from 'vitest'
import { topScopes } from './top-scopes.ts'

it('counts replays, requests that met a running one, and misuse, by scope', () => {
  const top = topScopes()
  for (let n = 0; n < 3; n++) top.count('reserve.replay', { operation: 'pay', scope: 'acme' })
  top.count('reserve.in_progress', { operation: 'pay', scope: 'acme' })
  for (let n = 0; n < 5; n++) top.count('reserve.key_misuse', { operation: 'pay', scope: 'noisy' })
  top.count('reserve.created', { operation: 'pay', scope: 'other' })
  top.count('reserve.replay', { operation: 'pay' })
  expect(top.list()).toEqual([
    { scope: 'noisy', replays: 0, inProgress: 0, misuse: 5, missedMax: 0 },
    { scope: 'acme', replays: 3, inProgress: 1, misuse: 0, missedMax: 0 },
  ])
})

it('has at most 100 scopes, and an abusive one is among them whenever it begins', () => {
  const top = topScopes()
  const replay = (scope: string) => top.count('reserve.replay', { scope })
  for (let n = 0; n < 10_000; n++) replay(`quiet-${n}`)
  for (let n = 0; n < 5_000; n++) {
    replay('abusive')
    replay(`late-${n}`)
  }
  const list = top.list()
  expect(list).toHaveLength(100)
  const [first] = list
  expect(first?.scope).toBe('abusive')
  expect(first?.replays).toBe(5_000)
  // What it may have missed is at most what the least of the list had.
  expect(first?.missedMax).toBe(100)
})

it('promises no more than it has seen: a scope that enters again begins at zero', () => {
  const top = topScopes()
  for (let n = 0; n < 100; n++) {
    top.count('reserve.replay', { scope: `first-${n}` })
    top.count('reserve.replay', { scope: `first-${n}` })
  }
  top.count('reserve.replay', { scope: 'new' })
  expect(top.list().find(({ scope }) => scope === 'new')).toEqual({
    scope: 'new',
    replays: 1,
    inProgress: 0,
    misuse: 0,
    missedMax: 2,
  })
})
