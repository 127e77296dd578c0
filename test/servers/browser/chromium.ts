import { type BrowserContext, chromium } from 'playwright-core'
import { findProgram, type FoundProgram } from '../brokers/find-program.ts'
import { makeDirectory } from '../postgres-directory.ts'

export interface Chromium {
  /** A person's own window: cookies and storage of its own. */
  open(options?: { readonly colorScheme?: 'light' | 'dark' }): Promise<BrowserContext>
  stop(): Promise<void>
}

/** A busy machine takes its time for the first window. */
const STARTS_WITHIN_MS = 60_000

/** As root it has no sandbox. The rest keeps it from calling home. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export function findChromium(): FoundProgram {
  return findProgram('chromium')
}

/** Starts Chromium without a window, with an empty profile of its own. */
export async function startChromium(): Promise<Chromium> {
  const found = findChromium()
  if (found.kind === 'missing') throw new Error(`cannot start Chromium: ${found.why}`)
  // It leaves files in its temporary directory: they go with the profile.
  const directory = makeDirectory({})
  const browser = await chromium
    .launch({
      executablePath: found.path,
      headless: true,
      args: FLAGS,
      timeout: STARTS_WITHIN_MS,
      env: { ...process.env, TMPDIR: directory.path, HOME: directory.path },
    })
    .catch((error: unknown) => {
      directory.remove()
      throw error
    })
  return {
    open: ({ colorScheme = 'light' } = {}) =>
      browser.newContext({ colorScheme, viewport: { width: 1280, height: 900 }, acceptDownloads: true }),
    async stop() {
      await browser.close()
      directory.remove()
    },
  }
}
