import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { libraryManifest, makeTree } from './fixture.ts'
import { checkReach, REACH_FILE } from './reach.ts'

const FILES = {
  'packages/latchkey/package.json': libraryManifest('.', 'stores/postgres'),
  'packages/latchkey/src/index.ts': "export * from './engine/run.ts'",
  'packages/latchkey/src/engine/run.ts': "import 'node:crypto'\nimport type { A } from '../ports/store.ts'",
  'packages/latchkey/src/ports/store.ts': '',
  'packages/latchkey/src/stores/postgres/index.ts': "import '../../ports/store.ts'",
}
const REACH = {
  '.': { folders: ['engine', 'ports', 'src'], packages: [], node: ['node:crypto'] },
  './stores/postgres': { folders: ['ports', 'stores/postgres'], packages: [], node: [] },
}

async function found(files: Record<string, string | object>): Promise<string[]> {
  const root = makeTree({ ...FILES, [REACH_FILE]: REACH, ...files })
  return (await checkReach({ root, update: false })).map(finding => finding.message)
}

describe('reach', () => {
  it('accepts what the committed list says', async () => {
    expect(await found({})).toEqual([])
  })

  it('reports a folder and a package that a subpath newly reaches', async () => {
    const findings = await found({
      'packages/latchkey/src/ports/store.ts': "import 'pg/lib/client.js'\nimport '../wire/key.ts'",
      'packages/latchkey/src/wire/key.ts': '',
    })
    expect(findings).toHaveLength(4)
    expect(findings[0]).toContain('"." reaches other folders (+wire)')
    expect(findings[3]).toContain('"./stores/postgres" reaches other packages (+pg)')
  })

  it('reports what is no longer reached', async () => {
    expect(await found({ 'packages/latchkey/src/engine/run.ts': '' })).toEqual([
      expect.stringContaining('(-ports)'),
      expect.stringContaining('(-node:crypto)'),
    ])
  })

  it('reports a subpath that is missing from the list, and one that is gone', async () => {
    const gone = { ...REACH, './gone': REACH['.'] }
    expect(await found({ [REACH_FILE]: gone })).toEqual([expect.stringContaining('"./gone" is no longer exported')])
    expect(await found({ [REACH_FILE]: { '.': REACH['.'] } })).toEqual([
      expect.stringContaining('"./stores/postgres" is not in the list'),
    ])
  })

  it('rewrites the list when asked to', async () => {
    const root = makeTree({ ...FILES, [REACH_FILE]: {} })
    expect(await checkReach({ root, update: true })).toEqual([])
    expect(JSON.parse(readFileSync(join(root, REACH_FILE), 'utf8'))).toEqual(REACH)
  })
})
