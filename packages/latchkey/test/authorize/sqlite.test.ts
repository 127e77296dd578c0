import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe } from 'vitest'
import { openPlace } from '../processes/database.ts'
import { itAuthorisesBeforeARowChangesHands } from './replay.cases.ts'

describe('a row of somebody else, on SQLite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-authorize-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  itAuthorisesBeforeARowChangesHands(async () => {
    const place = await openPlace(join(directory, 'shop.db'))
    await place.migrate()
    return place
  })
})
