import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { consoleFiles } from '../src/index.ts'
import { buildPage } from '../build-page.ts'

describe('the files of the console', () => {
  const out = mkdtempSync(join(tmpdir(), 'latchkey-page-'))
  beforeAll(() => buildPage(out))
  afterAll(() => rmSync(out, { recursive: true, force: true }))

  it('name each other by relative addresses, and nothing elsewhere', () => {
    const page = textOf('index.html')
    const named = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
    expect(named.filter(address => !address.startsWith('./assets/') && !address.startsWith('data:image/'))).toEqual([])
    expect(named.length).toBeGreaterThanOrEqual(3)
  })

  it('have no inline script and no inline style, which the content security policy forbids', () => {
    const page = textOf('index.html')
    expect(page).not.toMatch(/<script(?![^>]*\bsrc=)/)
    expect(page).not.toMatch(/<style|\sstyle=|\son\w+=/)
  })

  it('are the only ones that can be asked for', () => {
    const files = consoleFiles(pathToFileURL(`${out}/`))
    for (const path of ['../package.json', 'assets/../../package.json', '/etc/passwd', 'assets/', '', '__proto__'])
      expect(files.read(path)).toBeUndefined()
  })

  it('are asked to be built where they are missing', () => {
    expect(() => consoleFiles(pathToFileURL(`${out}/nowhere/`))).toThrow('npm run console')
  })

  function textOf(path: string): string {
    return new TextDecoder().decode(consoleFiles(pathToFileURL(`${out}/`)).read(path)?.bytes)
  }
})
