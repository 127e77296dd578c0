/** The result of one test file. `failed` names tests, and suites whose hooks or imports failed. */
export type FileReport = { file: string; passed: number; failed: string[]; skipped: Skipped[] }

/** The topmost thing that was skipped, with the number of tests in it. */
export type Skipped = { name: string; tests: number }

/** Sent by the process that runs vitest to the one that watches over it. */
export type Message = { kind: 'file'; report: FileReport } | { kind: 'end'; unhandledErrors: number }

export type RunReport = {
  files: FileReport[]
  unhandledErrors: number
  /** Why the run stopped before its end, if it did. */
  cutShort?: string
  exitCode: number | null
}
