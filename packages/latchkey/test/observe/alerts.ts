/** The names of the alerts in a file of rules. */
export function alertsOf(rules: string): string[] {
  return [...rules.matchAll(/^\s*- alert: (\w+)$/gm)].map(([, name = '']) => name)
}
