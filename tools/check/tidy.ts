// The small rules of this repository, each in its own file under tidy/.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isTypeScript, listFiles, readText } from './files.ts'
import type { CheckOptions, Finding } from './finding.ts'
import { readSource } from './syntax.ts'
import { clockFindings } from './tidy/clock.ts'
import { deadFileFindings } from './tidy/dead-files.ts'
import { folderFindings } from './tidy/folders.ts'
import { readmeFindings } from './tidy/readme.ts'
import { sizeFindings, staleRatchetFindings } from './tidy/size.ts'
import type { Ratchet } from './tidy/size.ts'
import { testMarkFindings } from './tidy/test-marks.ts'
import { nameFindings, wordFindings } from './tidy/words.ts'

const RATCHET_FILE = 'tools/check/tidy/ratchet.json'

export async function checkTidy({ root }: CheckOptions): Promise<Finding[]> {
  const files = listFiles(root)
  const sources = files.filter(isTypeScript).map(file => readSource(root, file))
  const ratchet = readRatchet(root)
  return [
    ...files.flatMap(file => [...nameFindings(file), ...wordFindings(root, file)]),
    ...sources.flatMap(source => [
      ...sizeFindings(source, ratchet),
      ...clockFindings(source),
      ...testMarkFindings(source),
    ]),
    ...staleRatchetFindings(sources, ratchet, RATCHET_FILE),
    ...deadFileFindings(root),
    ...folderFindings(files),
    ...readmeFindings(root, files),
  ]
}

function readRatchet(root: string): Ratchet {
  // A flat map of names to numbers, edited by hand and only downwards.
  return existsSync(join(root, RATCHET_FILE)) ? (JSON.parse(readText(root, RATCHET_FILE)) as Ratchet) : {}
}
