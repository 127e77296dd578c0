/** The directory of the playground's files. */
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BadInput } from './flags.ts'

/** The given directory, created if it is missing, or a new temporary one, which is removed when the process exits. */
export function openDirectory(given: string | undefined): string {
  if (given === undefined) return temporaryDirectory()
  try {
    mkdirSync(given, { recursive: true })
    accessSync(given, constants.W_OK)
    return given
  } catch (cause) {
    throw new BadInput(
      `the directory ${given} cannot be written: ${(cause as NodeJS.ErrnoException).code}. Choose another with --dir`,
    )
  }
}

function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'latchkey-playground-'))
  process.once('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }))
  return path
}
