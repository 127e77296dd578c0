import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { phases } from './ending-phases.ts'

/** An 'error' that nobody listens to ends the process it is emitted in, so each phase has a process of its own. */
describe('a connection that the server ends does not end the process', () => {
  it.each(Object.keys(phases))('%s', async phase => {
    const child = spawn(
      process.execPath,
      [
        '--import',
        'tsx',
        '--conditions=latchkey-source',
        fileURLToPath(new URL('./ending-app.ts', import.meta.url)),
        phase,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    const [output, errors, [exitCode]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ])
    // The rest of it is the inside of a client.
    const firstErrors = errors.split('\n').slice(0, 12)
    expect({ exitCode, output: output.trim(), firstErrors }).toEqual({
      exitCode: 0,
      output: 'outlived fatal, reset, close',
      firstErrors: [''],
    })
  })
})
