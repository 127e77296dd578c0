// npm run walk                      how many files and functions one request crosses, from a trace of its calls, for four flows
// npm run walk -- --only guarded    those flows whose names contain this
// npm run walk -- --files           also every file, in the order in which the request comes to it
// npm run walk -- --update          writes the table into ARCHITECTURE.md
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { installPostgres } from '../test/servers/install-postgres.ts'
import { findPostgres, startPostgres } from '../test/servers/postgres.ts'
import { flows, type WalkedFlow, walkTable, withTable } from './walk/flows.ts'
import { readFlow, type Walk } from './walk/read-flow.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    files: { type: 'boolean', default: false },
    update: { type: 'boolean', default: false },
  },
})
if (values.update && values.only !== '') throw new Error('--update writes all flows: leave --only out')
if (findPostgres().kind === 'missing') installPostgres()
const server = await startPostgres()
try {
  const walked: WalkedFlow[] = []
  for (const { title, program } of flows.filter(flow => flow.title.includes(values.only))) {
    const walk = await readFlow(fileURLToPath(program), server.url)
    walked.push({ title, walk })
    console.log(`${title}: from the adapter to the first statement\n${pathOf(walk)}\n`)
    if (values.files)
      console.log(`${walk.order.map((file, at) => `  ${String(at + 1).padStart(2)} ${file}`).join('\n')}\n`)
  }
  console.log(walkTable(walked))
  if (values.update) {
    const file = new URL('../ARCHITECTURE.md', import.meta.url)
    writeFileSync(file, withTable(readFileSync(file, 'utf8'), walkTable(walked)))
  }
} finally {
  await server.stop()
}

function pathOf({ path }: Walk): string {
  return path
    .map(({ name, file, line }, at) => `  ${String(at + 1).padStart(2)} ${name.padEnd(28)} ${file}:${line}`)
    .join('\n')
}
