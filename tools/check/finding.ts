/** One thing that is wrong: where it is, and a sentence that names the fix. */
export type Finding = { file: string; line?: number; message: string }

/** The arguments of a check: the repository's root, and whether to rewrite committed lists instead of comparing. */
export type CheckOptions = { root: string; update: boolean }

export type Check = (options: CheckOptions) => Promise<Finding[]>

export function describeFinding(finding: Finding): string {
  const place = finding.line === undefined ? finding.file : `${finding.file}:${finding.line}`
  return `${place}  ${finding.message}`
}
