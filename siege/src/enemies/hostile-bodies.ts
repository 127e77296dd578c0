/** Bodies that are expensive to parse, to sort or to compare. */
import { carried } from '../app/operations.ts'
import { type Attack, inParallel, post } from './enemy.ts'

const atOnce = 8

export const hostileBodies: Attack = async target => {
  const { random, name, signal, store } = target
  const routes = carried(store, ['transfers', 'atomic', 'phased', 'deferred'])
  const from = random.between(1, 1e9)
  const bodies = makeBodies()
  await inParallel({ count: bodies.length, atOnce, signal }, index => {
    const { type, body } = bodies[index] ?? { type: '', body: '' }
    const route = random.pick(routes)
    return post(target, { route, key: `body-${from}-${index}`, account: name, body, headers: { 'content-type': type } })
  })
}

interface Body {
  readonly type: string
  readonly body: string | Uint8Array
}

function makeBodies(): readonly Body[] {
  const json = (body: string | Uint8Array): Body => ({ type: 'application/json', body })
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  return [
    json(deep(500)),
    json(deep(50_000)),
    json('{"a":'.repeat(50_000) + '1' + '}'.repeat(50_000)),
    json(escapedAndReversed(2_000)),
    json(`[${Array.from({ length: 50_000 }, () => '1e5').join()}]`),
    json(`{${Array.from({ length: 5_000 }, () => '"same":1').join()}}`),
    json('{"a":1'),
    json(new Uint8Array([0xff, 0xfe, 0x7b, 0x7d])),
    json(`"${'\\ud800'.repeat(10_000)}"`),
    json(''),
    json('1'.repeat(200_000)),
    { type: 'application/x-www-form-urlencoded', body: 'a=1&'.repeat(20_000) },
    { type: 'multipart/form-data; boundary=x', body: '--x\r\n'.repeat(20_000) },
    { type: 'multipart/form-data', body: 'no boundary' },
    { type: 'text/plain; charset=utf-99', body: 'x' },
    { type: 'a'.repeat(5_000), body: '{}' },
    { type: 'application/json, text/html', body: '<p>' },
  ]
}

/** Names in reverse order, spelt with escapes, so that each has to be decoded and moved. */
function escapedAndReversed(count: number): string {
  const escaped = (text: string) =>
    [...text].map(each => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const names = Array.from({ length: count }, (_, index) => String(count - index).padStart(6, '0'))
  return `{${names.map(each => `"${escaped(each)}":${each.length}`).join()}}`
}
