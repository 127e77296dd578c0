/** What a check of `doctor` finds: one line, and where something is wrong, its cure. */
export interface Finding {
  readonly verdict: 'ok' | 'warn' | 'FAIL' | 'skip'
  readonly text: string
  /** What to do about it. */
  readonly cure?: string
  /** Statements that do it. */
  readonly sql?: readonly string[]
}

export interface Check {
  readonly name: string
  /** A rejection is a finding, too: it could not be looked at. */
  look(): Promise<readonly Finding[]>
}

export const ok = (text: string): readonly Finding[] => [{ verdict: 'ok', text }]
export const skip = (text: string): readonly Finding[] => [{ verdict: 'skip', text }]
