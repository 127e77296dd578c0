import { posix } from 'node:path'
import { isTest, isTypeScript } from '../files.ts'
import type { Finding } from '../finding.ts'

/** More names than this are not taken in at a glance. */
const FOLDER_FILES_MAX = 16

/** Folders of shipped source. Tests stand beside what they test and do not count. */
export function folderFindings(files: readonly string[]): Finding[] {
  const counts = new Map<string, number>()
  for (const file of files.filter(
    each => /^packages\/[^/]+\/src\//.test(each) && isTypeScript(each) && !isTest(each),
  )) {
    const folder = posix.dirname(file)
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => ({
      file: folder,
      message: `the folder has ${count} source files, more than ${FOLDER_FILES_MAX}: group those that serve one idea in a folder named for it`,
    }))
}
