import { createServer, type Server } from 'node:http'
import { consoleFiles, loopbackConsole } from '@latchkey/console'
import { nodeAdmin } from 'latchkey/admin'
import { personHere } from '../desk/direct.ts'
import { openHost, type OpenedHost } from '../desk/host.ts'
import type { CommandSpec } from '../program/command.ts'
import type { Context } from '../program/context.ts'
import { CliError, type Exit, exits, usage } from '../program/exit.ts'
import type { Flags } from '../program/flags.ts'
import { interrupted } from '../program/pause.ts'
import { openBrowser } from '../terminal/browser.ts'

export const serveConsole: CommandSpec = {
  path: 'console',
  summary: 'serves the page for operators on this machine until Ctrl-C; its link lets one browser in, once',
  options: [
    { flags: '--port <number>', summary: 'a port of your choice (default: one that is free)' },
    { flags: '--open', summary: 'opens the link in your browser' },
  ],
  async run({ flags, context }) {
    refuse(flags, context)
    const port = portOf(flags)
    const host = await openHost(context)
    try {
      return await serve(context, host, port)
    } finally {
      await host.close()
    }
  },
}

function refuse(flags: Flags, { settings }: Context): void {
  if (flags.has('dry-run')) throw usage('console cannot pretend: --dry-run is for commands that act once')
  const { value, origin } = settings.of.server
  if (value === undefined) return
  throw usage(
    `console needs the store itself, and ${origin} names a server. Leave it out, or open the page of that server in a browser: ${value}`,
  )
}

const portMax = 65_535

function portOf(flags: Flags): number {
  const port = flags.count('port') ?? 0
  if (port <= portMax) return port
  throw usage(`--port must be at most ${portMax} (got ${port})`)
}

async function serve(context: Context, { latchkey, as }: OpenedHost, wanted: number): Promise<Exit> {
  const { out, flags, env, signal } = context
  const environment = flags.text('profile') ?? env['LATCHKEY_PROFILE']
  let name = ''
  const { handler, query } = loopbackConsole({
    ...{ latchkey, person: personHere(), files: pageBeside(), host: () => name },
    ...(environment === undefined ? {} : { environment }),
  })
  const server = createServer(nodeAdmin(handler))
  name = `127.0.0.1:${await listen(server, wanted)}`
  const url = `http://${name}/${query}`
  out.talk(`${as}. The link lets one browser in, once; Ctrl-C ends it`)
  out.value({ url }, () => [url])
  if (flags.has('open') && !(await openBrowser(url)))
    out.talk('no browser could be opened here: open the link yourself')
  await interrupted(signal)
  server.close()
  // A browser keeps its connections for the next request, and there is none.
  server.closeAllConnections()
  out.talk('ended')
  return exits.interrupted
}

/** The program is one file; the files of the page are packed in a folder beside it. */
function pageBeside() {
  try {
    return consoleFiles(new URL('page/', import.meta.url))
  } catch (cause) {
    throw new CliError(
      exits.no,
      'no-page',
      `the page is not beside this program, in ${new URL('page/', import.meta.url).pathname}: install @latchkey/cli whole. ${String(cause)}`,
    )
  }
}

/** On loopback only. 0: the kernel chooses. */
function listen(server: Server, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === 'EADDRINUSE' || error.code === 'EACCES'
      reject(
        isTaken ? usage(`port ${wanted} cannot be used (${error.code}): choose another, or leave --port out`) : error,
      )
    })
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : wanted)
    })
  })
}
