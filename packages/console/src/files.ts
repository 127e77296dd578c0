/** The built page of the console, for `adminRoutes({ console: consoleFiles() })`. */
import { readdirSync, readFileSync } from 'node:fs'
import type { ConsoleFiles } from 'latchkey/admin'

export interface ConsoleFile {
  readonly bytes: Uint8Array
  readonly type: string
}

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

/**
 * All files are read now, at most 200 kB: no request reaches the file system, so none can ask for another path. `directory`: where the build is.
 * Default: the one in this package.
 */
export function consoleFiles(directory: URL = new URL('../dist/page/', import.meta.url)): ConsoleFiles {
  const files = new Map(readPage(directory).map(path => [path, fileAt(directory, path)]))
  return { read: path => files.get(path) }
}

function readPage(directory: URL): readonly string[] {
  try {
    const assets = readdirSync(new URL('assets/', directory)).map(name => `assets/${name}`)
    return ['index.html', ...assets]
  } catch (cause) {
    throw new Error(
      `the page of the console is not built in ${directory.pathname}: run \`npm run console\` in its repository`,
      { cause },
    )
  }
}

function fileAt(directory: URL, path: string): ConsoleFile {
  const extension = path.slice(path.lastIndexOf('.') + 1)
  return { bytes: readFileSync(new URL(path, directory)), type: types[extension] ?? 'application/octet-stream' }
}
