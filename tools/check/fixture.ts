import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach } from 'vitest'

const made: string[] = []

afterEach(() => {
  for (const root of made.splice(0)) rmSync(root, { recursive: true, force: true })
})

/** Writes a small repository into a temporary folder that goes away after the test; an object is written as JSON. */
export function makeTree(files: Record<string, string | object>): string {
  const root = mkdtempSync(join(tmpdir(), 'latchkey-check-'))
  made.push(root)
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return root
}

/** A package.json of the library that exports the given folders of src, in the shape the build makes. */
export function libraryManifest(...folders: string[]): object {
  const entries = folders.map(folder => {
    const path = folder === '.' ? '' : `${folder}/`
    const conditions = {
      'latchkey-source': `./src/${path}index.ts`,
      types: `./dist/${path}index.d.ts`,
      default: `./dist/${path}index.js`,
    }
    return [folder === '.' ? '.' : `./${folder}`, conditions]
  })
  return { name: 'latchkey', exports: Object.fromEntries(entries), dependencies: { 'structured-headers': '^2.0.0' } }
}
