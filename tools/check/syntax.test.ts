import { describe, expect, it } from 'vitest'
import { importsOf, parseSource } from './syntax.ts'

const specifiers = (text: string): string[] =>
  importsOf(parseSource('a.ts', text)).map(reference => reference.specifier)

describe('the import scanner', () => {
  it.each([
    ["import { a } from './a.ts'", './a.ts'],
    ["import './side-effect.ts'", './side-effect.ts'],
    ["import type { A } from './type.ts'", './type.ts'],
    ["import { type A } from './inline-type.ts'", './inline-type.ts'],
    ["export { a } from './re-export.ts'", './re-export.ts'],
    ["export * from './all.ts'", './all.ts'],
    ["export type { A } from './type-export.ts'", './type-export.ts'],
    ["const a = await import('./dynamic.ts')", './dynamic.ts'],
    ['const a = await import(`./template.ts`)', './template.ts'],
    ["type A = import('./import-type.ts').A", './import-type.ts'],
    ["type A = typeof import('./typeof.ts')", './typeof.ts'],
    ["import\n  {\n a }\n from\n './lines.ts'", './lines.ts'],
  ])('sees %s', (text, expected) => {
    expect(specifiers(text)).toEqual([expected])
  })

  it('sees no import in comments and strings', () => {
    expect(specifiers("// import './a.ts'\n/* import './b.ts' */\nconst c = `import './c.ts'`")).toEqual([])
  })

  it('names the line of the import', () => {
    expect(importsOf(parseSource('a.ts', "\n\nimport './a.ts'\n"))[0]?.line).toBe(3)
  })

  it('names the file that does not parse', () => {
    expect(() => parseSource('broken.ts', 'const = 1')).toThrow(/^broken\.ts does not parse/)
  })
})
