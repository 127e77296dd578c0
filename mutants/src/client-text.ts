/** Known bugs in what is read from clients: keys, scopes, bodies, headers. */
import type { Mutant, NamedTest } from './mutant.ts'

const source = 'packages/latchkey/src'
const fingerprint = `${source}/engine/fingerprint`
const test = (path: string, name: string): NamedTest => ({ path: `${source}/${path}`, test: name })
const fetchCase = (name: string): NamedTest => test('http/fetch/index.test.ts', name)

export const clientTextMutants: readonly Mutant[] = [
  {
    name: 'text: names are sorted by insertion, however many there are',
    patches: [{ file: `${fingerprint}/json/sort-marks.ts`, find: 'insertionMax = 8', replace: 'insertionMax = 5_000' }],
    caughtBy: [test('engine/fingerprint/json/sort-marks.test.ts', '1000 names, escapes alike, shuffled')],
  },
  {
    name: 'text: what names share is read again at every comparison',
    patches: [
      { file: `${fingerprint}/json/sort-marks.ts`, find: 'cursor.common = leftShared', replace: 'cursor.common = 0' },
    ],
    caughtBy: [test('engine/fingerprint/json/sort-marks.test.ts', '1000 names, escapes alike, shuffled')],
  },
  {
    name: 'text: a path of include that leads to nothing leaves nothing to compare',
    patches: [
      {
        file: `${fingerprint}/select-fields.ts`,
        find: 'if (missing.length > 0) return value',
        replace: '',
      },
    ],
    caughtBy: [
      test('engine/fingerprint/fingerprint.test.ts', 'include that leads to nothing makes the whole body count'),
      fetchCase('compares whole bodies where a path of include leads to nothing'),
    ],
  },
  {
    name: 'text: a parsed value is walked to any depth',
    patches: [
      {
        file: `${fingerprint}/json/canonical-value.ts`,
        find: 'walk.parents.length >= jsonDepthMax',
        replace: 'walk.parents.length >= Infinity',
      },
    ],
    caughtBy: [
      test('engine/fingerprint/json/canonical-value.test.ts', 'stops at 256 levels'),
      test('http/exchange/parsed-body.test.ts', 'is too large where it is nested deeper than 256 levels'),
    ],
  },
  {
    name: 'text: a parsed string stands for its text',
    patches: [
      {
        file: `${source}/http/exchange/parsed-body.ts`,
        find: 'if (isJson(essence)) return Buffer.from(json)',
        replace: `if (isJson(essence)) return Buffer.from(typeof value === 'string' ? value : json)`,
      },
    ],
    caughtBy: [test('http/exchange/parsed-body.test.ts', 'tells each value from its look-alike')],
  },
  {
    name: 'text: a consumed body counts as an empty one',
    patches: [
      {
        file: `${source}/http/exchange/parsed-body.ts`,
        find: `if (value === undefined) return { kind: 'unreadable', cure }`,
        replace: `if (value === undefined) return { kind: 'bytes', bytes: new Uint8Array() }`,
      },
    ],
    caughtBy: [test('http/exchange/parsed-body.test.ts', 'is refused as consumed where nothing of it is left')],
  },
  {
    name: 'text: deep input goes to JSON.stringify',
    patches: [
      {
        file: `${source}/engine/steps/input-text.ts`,
        find: 'const isDeep = isDeeperThan(jsonDepthMax, input)',
        replace: 'const isDeep = isDeeperThan(jsonDepthMax, null)',
      },
    ],
    caughtBy: [test('engine/steps/input-text.test.ts', 'is nested at most 256 levels')],
  },
  {
    name: 'text: scopes hold lone surrogates and U+0000',
    patches: [
      {
        file: `${source}/engine/request.ts`,
        find: 'const fault = textFault(part)',
        replace: `const fault = textFault('')`,
      },
    ],
    caughtBy: [
      test('engine/request.test.ts', 'refuses a scope with'),
      fetchCase('does not run when the scope holds a lone surrogate'),
      fetchCase('does not run when the scope holds U+0000'),
    ],
  },
  {
    name: 'text: a scope of any length',
    patches: [
      {
        file: `${source}/engine/request.ts`,
        find: 'if (bytes > scopeBytesMax)',
        replace: 'if (bytes > Infinity)',
      },
    ],
    caughtBy: [
      test('engine/request.test.ts', 'refuses a scope with'),
      fetchCase('does not run when the scope holds more than 1,024 bytes'),
    ],
  },
  {
    name: 'text: two lines of the key field are one',
    patches: [
      { file: `${source}/wire/key-field.ts`, find: 'if (all.length > 1)', replace: 'if (all.length > 2)' },
      { file: `${source}/wire/key-field.ts`, find: `parseKey(all[0] ?? '',`, replace: `parseKey(all.join(', '),` },
    ],
    caughtBy: [
      test('wire/key-field.test.ts', 'two lines that make one quoted string when joined'),
      fetchCase('refuses two half-quoted lines as the key field'),
    ],
  },
  {
    name: 'text: every response header is stored',
    patches: [
      {
        file: `${source}/engine/rules/judge.ts`,
        find: 'const headers = selectStoredHeaders(outcome.headers, neverStored)',
        replace: 'const { headers } = outcome',
      },
    ],
    caughtBy: [
      fetchCase('gives cookies, credentials and facts of one exchange to the first caller only'),
      fetchCase('gives what the site names in neverStore to the first caller only'),
      { path: 'packages/latchkey/test/phased/sqlite.test.ts', test: 'stores no credentials among the headers' },
    ],
  },
]
