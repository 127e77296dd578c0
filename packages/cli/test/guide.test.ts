import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { commands } from '../src/commands/index.ts'
import { globalOptions } from '../src/program/program.ts'

const guide = readFileSync(new URL('../../../docs/guides/command-line.md', import.meta.url), 'utf8')

it.each(commands.map(({ path }) => path))('has latchkey %s in the guide', path => {
  expect(guide).toMatch(new RegExp(`\`latchkey ${path}[ \`]`))
})

it('has no command in the guide that the program does not have', () => {
  const known = commands.map(({ path }) => path)
  const named = [...guide.matchAll(/`latchkey ([a-z-]+(?: [a-z-]+)?)[^`]*`/g)].map(([, words = '']) => words)
  const unknown = named.filter(words => !known.includes(words) && !known.includes(words.split(' ')[0] ?? ''))
  expect(unknown).toEqual([])
})

it('names every option that is for all commands', () => {
  const options = globalOptions.flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? [])
  expect(options.filter(option => !guide.includes(option) && !['--quiet', '--verbose'].includes(option))).toEqual([])
})
