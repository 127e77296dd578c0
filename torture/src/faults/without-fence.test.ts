import { describe, expect, it } from 'vitest'
import { bundle } from '../../../test/programs/bundle.ts'
import { withoutFence } from './without-fence.ts'

describe('a run without the fence', () => {
  it('finds in the store what it takes out', async () => {
    const programs = await bundle('without-fence', [new URL('../app/app.ts', import.meta.url)], withoutFence)
    programs.remove()
    const stale = withoutFence.map(change => ({ ...change, find: 'no such text' }))
    await expect(bundle('without-fence', [new URL('../app/app.ts', import.meta.url)], stale)).rejects.toThrow(
      'no such text',
    )
  })
})
