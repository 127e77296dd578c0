// npm run walk                      how many files and functions one request crosses, from a trace of its calls, for four flows
// npm run walk -- --only guarded    those flows whose names contain this
// npm run walk -- --files           also every file, in the order in which the request comes to it
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { installPostgres } from '../test/servers/install-postgres.ts'
import { findPostgres, startPostgres } from '../test/servers/postgres.ts'
import { readFlow, type Walk } from './walk/read-flow.ts'

const FLOWS = [
  { title: 'guarded, Express', program: new URL('./walk/flows/guarded-express.ts', import.meta.url) },
  { title: 'atomic, Hono', program: new URL('./walk/flows/atomic-hono.ts', import.meta.url) },
  { title: 'phased, Hono', program: new URL('./walk/flows/phased-hono.ts', import.meta.url) },
  { title: 'a webhook that settles', program: new URL('./walk/flows/webhook.ts', import.meta.url) },
]

const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, files: { type: 'boolean', default: false } },
})
if (findPostgres().kind === 'missing') installPostgres()
const server = await startPostgres()
try {
  const lines: string[] = []
  for (const { title, program } of FLOWS.filter(flow => flow.title.includes(values.only))) {
    const walk = await readFlow(fileURLToPath(program), server.url)
    lines.push(`| ${title} | ${walk.files} | ${walk.functions} | ${walk.calls} | ${walk.path.length} |`)
    console.log(`${title}: from the adapter to the first statement\n${pathOf(walk)}\n`)
    if (values.files)
      console.log(`${walk.order.map((file, at) => `  ${String(at + 1).padStart(2)} ${file}`).join('\n')}\n`)
  }
  console.log(
    [
      '| flow, on PostgreSQL | files | functions | calls | hops |',
      '| --- | ---: | ---: | ---: | ---: |',
      ...lines,
    ].join('\n'),
  )
} finally {
  await server.stop()
}

function pathOf({ path }: Walk): string {
  return path
    .map(({ name, file, line }, at) => `  ${String(at + 1).padStart(2)} ${name.padEnd(28)} ${file}:${line}`)
    .join('\n')
}
