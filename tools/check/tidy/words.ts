import { basename } from 'node:path'
import { readText } from '../files.ts'
import type { Finding } from '../finding.ts'

const NAMES = /^(?:utils?|helpers?|common|types)\.(?:test\.)?tsx?$/
const TEXT = /(?:\.(?:tsx?|js|mjs|json|md|sql|lua|sh|yml|yaml|toml|html|css)|(?:^|\/)[^.]+|(?:^|\/)\.[^/]+)$/
const LOCK = /(?:^|\/)package-lock\.json$/
// These files spell the words in order to find them.
const SPELLERS = /^tools\/check\/(?:tidy\/words|tidy\.test)\.ts$/

const WORDS: readonly { pattern: RegExp; fix: string }[] = [
  {
    pattern: /\bTODO\b(?!\([\w .-]+\): \S.*\.)/,
    fix: 'a TODO names its owner and is a sentence, TODO(sql): Drop this with migration 4.',
  },
  { pattern: /\bFIXME\b/, fix: 'a FIXME is a known bug: fix it, or open an issue' },
  { pattern: /\bXXX\b/, fix: 'XXX says nothing: write the reason as a comment' },
  {
    pattern: /https?:\/\/registry\.|\bregistry\.npmjs\b|\bregistry\s*=\s*\S/,
    fix: 'a registry address belongs in the configuration of the machine that installs',
  },
  // The library has a folder of this name, whose files are imported by relative paths.
  {
    pattern: /(?:\.\.|\/work)\/shared\b(?!(?:\/[a-z-]+)+\.ts')/,
    fix: 'this folder is not part of the repository: write here what it says',
  },
]

export function nameFindings(file: string): Finding[] {
  if (!NAMES.test(basename(file))) return []
  return [{ file, message: 'a file is named for its one idea (lease.ts): rename it, or split it if no name fits' }]
}

export function wordFindings(root: string, file: string): Finding[] {
  if (LOCK.test(file)) return lockFindings(readText(root, file), file)
  if (!TEXT.test(file) || SPELLERS.test(file)) return []
  return readText(root, file)
    .split('\n')
    .flatMap((row, index) =>
      WORDS.filter(({ pattern }) => pattern.test(row)).map(({ fix }) => ({ file, line: index + 1, message: fix })),
    )
}

function lockFindings(text: string, file: string): Finding[] {
  const index = text.split('\n').findIndex(row => row.includes('"resolved": "http'))
  const fix = 'contains registry addresses: set omit-lockfile-registry-resolved=true in .npmrc and run `npm install`'
  return index === -1 ? [] : [{ file, line: index + 1, message: fix }]
}
