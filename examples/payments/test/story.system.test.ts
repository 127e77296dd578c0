import { afterAll, describe, expect, it } from 'vitest'
import { describePostgres } from '../../../test/servers/describe-postgres.ts'
import { endTheRest, root, runStory } from './story-process.ts'

/** Longer than the story allows itself. */
const limitMs = 200_000

afterAll(endTheRest)

describe('the story', () => {
  it('ends every scene with the charges that were intended, on SQLite', { timeout: limitMs }, async () => {
    const { code, said, leftBehind } = await runStory(root, '--quiet')
    expect(code, said).toBe(0)
    expect(said.match(/^ok {5}\d\. /gm)).toHaveLength(8)
    expect(leftBehind).toBe(0)
  })

  it('refuses a flag that it does not know with a sentence and exit code 2', async () => {
    const { code, said } = await runStory(root, '--loud')
    expect(code).toBe(2)
    expect(said).toContain('--loud')
  })
})

describePostgres('the story on PostgreSQL', database => {
  it('ends every scene with the charges that were intended, on PostgreSQL', { timeout: limitMs }, async () => {
    const { code, said } = await runStory(root, '--quiet', '--store', database.url)
    expect(code, said).toBe(0)
  })
})
