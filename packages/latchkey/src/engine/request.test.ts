import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { downstreamKey } from './execution.ts'
import { identify, lengthPrefixed, type Scope, scopeText, singleTenant } from './request.ts'

const base = { scope: 'acme', operation: 'payments.create', key: 'k-1' } as const
const idOf = (over: Partial<Parameters<typeof identify>[0]> = {}) => identify({ ...base, ...over }).id

describe('identify', () => {
  it('gives the same id for ever: rows outlive releases', () => {
    // Written by hand from the documented form, not by the code under test.
    const text = '20:latchkey.identity.v11:14:acme9:operation15:payments.create3:k-1'
    const hex = createHash('sha256').update(text).digest('hex')
    expect(idOf().replaceAll('-', '')).toBe(hex.slice(0, 32))
    expect(idOf()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  })

  it('tells scope, operation and key apart', () => {
    const ids = [idOf(), idOf({ scope: 'other' }), idOf({ operation: 'payments.refund' }), idOf({ key: 'k-2' })]
    expect(new Set(ids).size).toBe(4)
  })

  it('never lets two lists of parts meet', () => {
    const scopes: Scope[] = [['ab', 'c'], ['a', 'bc'], ['abc'], ['a', 'b', 'c'], 'ab/c', ['ab/c'], '1:a', ['1', 'a']]
    const ids = scopes.map(scope => idOf({ scope }))
    // A string and a list of that one string are the same scope.
    expect(new Set(ids).size).toBe(scopes.length - 1)
    expect(idOf({ scope: 'ab/c' })).toBe(idOf({ scope: ['ab/c'] }))
    expect(idOf({ operation: 'a', key: 'bc' })).not.toBe(idOf({ operation: 'ab', key: 'c' }))
    expect(idOf({ scope: ['a', 'b'], operation: 'c' })).not.toBe(idOf({ scope: ['a'], operation: 'bc' }))
  })

  it('keeps keys apart that differ in case, trailing space or Unicode form', () => {
    const keys = ['caf\u00e9', 'cafe\u0301', 'Caf\u00e9', 'caf\u00e9 ', 'caf\u00e9\u0000']
    expect(new Set(keys.map(key => idOf({ key }))).size).toBe(keys.length)
  })

  it('lets one key span the operations of a scope, and only then', () => {
    const wide = { keyNamespace: 'scope' } as const
    expect(idOf({ ...wide, operation: 'a' })).toBe(idOf({ ...wide, operation: 'b' }))
    expect(idOf(wide)).not.toBe(idOf())
    expect(idOf({ ...wide, scope: 'other' })).not.toBe(idOf(wide))
  })

  it('keeps a readable scope that can be told apart again', () => {
    expect(identify(base)).toMatchObject({ scope: 'acme', operation: 'payments.create' })
    expect(identify({ ...base, scope: ['acme', 'u/1'] }).scope).toBe('acme/u%2F1')
    expect(identify({ ...base, scope: ['acme', 'u%2F1'] }).scope).toBe('acme/u%252F1')
    expect(identify({ ...base, scope: singleTenant() }).scope).toBe('single-tenant')
  })

  it.each([[''], [[]], [['acme', '']], [undefined], [null], [42], [['acme', undefined]], [{ tenant: 'acme' }]])(
    'refuses the scope %j',
    scope => {
      // What JavaScript callers and a forgotten header can hand in, past the types.
      expect(() => identify({ ...base, scope: scope as Scope })).toThrow(
        expect.objectContaining({ code: 'scope-unresolved' }),
      )
    },
  )

  it.each<[string, Scope, string]>([
    ['a lone surrogate', '\ud800', 'lone surrogate'],
    ['half of a pair in the second part', ['acme', 'x\udc00y'], 'lone surrogate'],
    ['U+0000', 'a\0b', 'U+0000 at character 2'],
    ['5 MB', 'x'.repeat(5_000_000), '1024 bytes'],
    ['1,025 bytes', 'x'.repeat(1_025), '1024 bytes'],
    ['1,026 bytes in 513 characters', '\u00e9'.repeat(513), '1024 bytes'],
    ['1,025 bytes in parts', ['x'.repeat(1_000), 'y'.repeat(25)], '1024 bytes'],
    ['a million parts', new Array<string>(1_000_000).fill('x'), '1024 bytes'],
  ])('refuses a scope with %s in a short sentence that names it', (_, scope, fault) => {
    for (const refuse of [() => identify({ ...base, scope }), () => scopeText(scope)]) {
      const refused = expect.objectContaining({ code: 'scope-unresolved', message: expect.stringContaining(fault) })
      expect(refuse).toThrow(refused)
      expect(refuse).toThrow(expect.objectContaining({ message: expect.stringMatching(/^.{0,250}$/) }))
    }
  })

  it('takes unusual text for what it is', () => {
    const scopes = [
      '\ufffd',
      '\u{1f511}',
      'e\u0301',
      '\u00e9',
      '\u202eabc',
      '"\'',
      'x'.repeat(1_024),
      '\u{1f511}'.repeat(256),
    ]
    expect(new Set(scopes.map(scope => idOf({ scope }))).size).toBe(scopes.length)
    for (const scope of scopes) expect(identify({ ...base, scope }).scope).toBe(scope)
  })

  it('refuses a key with a lone surrogate', () => {
    expect(() => idOf({ key: 'k\ud800' })).toThrow(expect.objectContaining({ code: 'invalid-key' }))
  })

  it('puts no raw key into its error', () => {
    const leak = () => identify({ ...base, key: 'secret-key', scope: '' })
    expect(leak).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret-key') }))
  })
})

it('prefixes with the length in bytes, not in characters', () => {
  expect(lengthPrefixed(['é', 'a'])).toBe('2:é1:a')
})

describe('downstreamKey', () => {
  const id = '00000000-0000-0000-0000-000000000001'

  it('is the same for ever: the provider remembers it', () => {
    const text = `22:latchkey.downstream.v136:${id}6:charge1:0`
    const digest = createHash('sha256').update(text).digest()
    expect(downstreamKey(id, 'charge').replaceAll('-', '')).toBe(digest.toString('hex').slice(0, 32))
    expect(downstreamKey(id, 'charge', 'opaque')).toBe(digest.toString('base64url'))
    expect(downstreamKey(id, 'charge', 'opaque')).toMatch(/^[\w-]{43}$/)
  })

  it('differs by effect and by identity', () => {
    const keys = [
      downstreamKey(id, 'charge'),
      downstreamKey(id, 'refund'),
      downstreamKey(id.replace('1', '2'), 'charge'),
    ]
    expect(new Set(keys).size).toBe(3)
  })
})
