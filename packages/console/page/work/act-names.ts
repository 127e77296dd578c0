/** The acts of a plan, as its buttons say them. */
export const actNames: Readonly<Record<string, string>> = {
  take: 'Take',
  look_up: 'Look up at the provider',
  resume: 'Resume',
  redrive: 'Send again',
  import_evidence: 'Record what the export says',
}
