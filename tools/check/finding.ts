/** One thing that is wrong: where it is, and a sentence that names the cure. */
export type Finding = { file: string; line?: number; message: string }

/** What a check is handed: the repository's root, and whether committed lists are to be rewritten instead of compared. */
export type CheckOptions = { root: string; update: boolean }

export type Check = (options: CheckOptions) => Promise<Finding[]>

export function describeFinding(finding: Finding): string {
  const place = finding.line === undefined ? finding.file : `${finding.file}:${finding.line}`
  return `${place}  ${finding.message}`
}
