import { expect, it } from 'vitest'
import { describeFinding } from './finding.ts'
import { makeTree } from './fixture.ts'
import { checkThreats } from './threats.ts'

const CLAIM = '[`claim`](../src/claim.ts)'
const TEST = '["grants one owner"](../src/claim.test.ts)'

async function found(rows: readonly string[]): Promise<string[]> {
  const root = makeTree({
    'docs/threat-model.md': [
      '# Threats',
      '',
      '| threat | control | test | what is left |',
      '| --- | --- | --- | --- |',
      ...rows,
      '',
      '| word | meaning |',
      '| --- | --- |',
      '| fence | a number |',
    ].join('\n'),
    'src/claim.ts': 'export function claim() {}\nexport const rules = { fence: 1 }\n// release is not here\n',
    'src/claim.test.ts': "it('grants one owner', () => {})\n// it('grants two owners')\n",
    'src/table.sql': 'create unique index keys_pkey on keys (id)',
  })
  return (await checkThreats({ root, update: false })).map(describeFinding)
}

it('accepts rows whose controls and tests are there', async () => {
  expect(
    await found([
      `| two writers | The key decides: ${CLAIM}, [\`fence\`](../src/claim.ts). | ${TEST} | |`,
      `| a second row | [\`keys_pkey\`](../src/table.sql), as [the guide](guide.md#keys) says | ${TEST} | a \\| in a text |`,
      '| forgery | None yet: there is no console to forge a request to. | None yet: it is written with the console. | |',
    ]),
  ).toEqual([])
})

it.each([
  ['a file that is gone', '[`claim`](../src/gone.ts)', TEST, 'links to ../src/gone.ts, which does not exist'],
  ['a name that is not declared', '[`release`](../src/claim.ts)', TEST, 'src/claim.ts declares no release'],
  ['a part of a name', '[`keys`](../src/claim.ts)', TEST, 'src/claim.ts declares no keys'],
  ['a control without a name', '[the claim](../src/claim.ts)', TEST, 'links to ../src/claim.ts without a name'],
  [
    'a test that is only a comment',
    CLAIM,
    '["grants two owners"](../src/claim.test.ts)',
    'has no test "grants two owners"',
  ],
  ['a test in a file that is none', CLAIM, '["fence"](../src/claim.ts)', 'src/claim.ts holds no tests'],
  [
    'a test file without a name',
    CLAIM,
    '[claims](../src/claim.test.ts)',
    'without a name: write ["name of a test"](path)',
  ],
  ['no control', 'The key decides.', TEST, 'names no control'],
  ['a document for a control', 'See [the guide](guide.md).', TEST, 'names no control'],
  ['no test', CLAIM, '', 'names no test'],
  ['no reason why there is none', CLAIM, 'None yet: no.', 'names no test'],
])('refuses a row with %s', async (_, control, test, fault) => {
  expect(await found([`| two writers | ${control} | ${test} | |`])).toEqual([
    expect.stringMatching(/^docs\/threat-model\.md:5 {2}two writers: /),
  ])
  expect((await found([`| two writers | ${control} | ${test} | |`]))[0]).toContain(fault)
})

it('refuses a model without a table of threats', async () => {
  const root = makeTree({ 'docs/threat-model.md': '# Threats\n' })
  expect(await checkThreats({ root, update: false })).toHaveLength(1)
  expect(await checkThreats({ root: makeTree({}), update: false })).toHaveLength(1)
})
