import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { describePostgres } from '../../test/servers/describe-postgres.ts'
import { flows, statedWalks, withTable } from './flows.ts'
import { readFlow } from './read-flow.ts'

const architecture = readFileSync(new URL('../../ARCHITECTURE.md', import.meta.url), 'utf8')

describePostgres('a request', database => {
  it.each(flows)('crosses no more files and hops than ARCHITECTURE.md states: $title', async ({ title, program }) => {
    const stated = statedWalks(architecture).get(title)
    const { files, path } = await readFlow(fileURLToPath(program), database.url)
    // A walk that became shorter is good news; `npm run walk -- --update` writes it down.
    expect(files).toBeLessThanOrEqual(stated?.files ?? 0)
    expect(path.length).toBeLessThanOrEqual(stated?.hops ?? 0)
  })
})

it('writes its table between the marks, and reads it there', () => {
  const table = '| a flow | 35 | 100 | 200 | 14 |'
  const text = withTable(architecture, table)
  expect([...statedWalks(text)]).toEqual([['a flow', { files: 35, hops: 14 }]])
  expect(withTable(text, table)).toBe(text)
})
