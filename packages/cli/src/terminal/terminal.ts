/** Questions to the person at the terminal. Without one, nothing is asked, and the default of every question is no. */
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { CliError, exits, usage } from '../program/exit.ts'

export interface Terminal {
  readonly canAsk: boolean
  /** Rejects when the call is interrupted. */
  ask(question: string): Promise<string>
  /** All of stdin, without the line end that ends it. On a terminal, one line. */
  readInput(what: string): Promise<string>
}

export interface TerminalOptions {
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined }
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined }
  /** --no-input. */
  readonly noInput: boolean
  readonly signal: AbortSignal
}

/** A key has at most 255 characters; what is longer is a file that was piped in by mistake. */
const inputBytesMax = 4_096

export function terminalOf({ stdin, stderr, noInput, signal }: TerminalOptions): Terminal {
  const isTerminal = stdin.isTTY === true && stderr.isTTY === true
  const ask = async (question: string) => {
    const lines = createInterface({ input: stdin, output: stderr })
    // In its raw mode the terminal sends no signal: the interface reads Ctrl-C as a key.
    lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    try {
      return await lines.question(question, { signal })
    } catch (error) {
      throw signal.aborted ? new CliError(exits.interrupted, 'interrupted', 'interrupted; nothing was done') : error
    } finally {
      lines.close()
    }
  }
  return {
    canAsk: isTerminal && !noInput,
    ask,
    async readInput(what) {
      if (stdin.isTTY !== true) return readAll(stdin, what)
      if (noInput || !isTerminal) throw usage(`${what} must be on stdin, and nothing may be asked for here`)
      return ask(`${what}: `)
    },
  }
}

async function readAll(stdin: Readable, what: string): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stdin) {
    // Without an encoding, a stream of bytes hands out buffers.
    const part = chunk as Buffer
    bytes += part.byteLength
    if (bytes > inputBytesMax) throw usage(`${what} on stdin is longer than ${inputBytesMax} bytes`)
    chunks.push(part)
  }
  const text = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
  if (text === '') throw usage(`${what} is missing: give it on stdin, for example with printf %s "$KEY" | latchkey …`)
  return text
}
