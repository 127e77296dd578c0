import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { describePostgres } from '../../test/servers/describe-postgres.ts'
import { problemKinds } from '../../packages/latchkey/src/wire/problem.ts'
import { setupTable, tableIn } from './table.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const guide = read('docs/guides/errors.md')

it.each(Object.keys(problemKinds))('the guide explains the answer %s', code => {
  expect(guide).toContain(`| \`${code}\` | ${problemKinds[code as keyof typeof problemKinds].status}`)
})

/** A type leaves nothing behind that a program could ask. */
const errorCodes = [...read('packages/latchkey/src/ports/errors.ts').matchAll(/^ {2}\| '([a-z-]+)'$/gm)].map(
  ([, code = '']) => code,
)

it('finds the codes of errors in their type', () => {
  expect(errorCodes.length).toBeGreaterThan(20)
})

it.each(errorCodes)('the guide explains the error %s', code => {
  expect(guide).toMatch(new RegExp(`^\\| \`${code}\` \\|`, 'm'))
})

describePostgres('the table of wrong set-ups', database => {
  it('is what they print; `npm run errors` writes it anew', { timeout: 120_000 }, async () => {
    expect(tableIn(guide)).toBe(await setupTable(database.url))
  })
})
