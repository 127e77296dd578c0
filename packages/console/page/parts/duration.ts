/** Times as people read them: how long in two units, and when in UTC. */
const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** `2 h 14 min`, `12 s`; less than a second is `0 s`. */
export function durationText(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1_000)) * 1_000
  const at = units.findIndex(([, unit]) => whole >= unit)
  if (at === -1) return '0 s'
  const [name, unit] = units[at] ?? ['s', 1_000]
  const first = `${Math.floor(whole / unit)} ${name}`
  const smaller = units[at + 1]
  if (smaller === undefined) return first
  const rest = Math.floor((whole % unit) / smaller[1])
  return rest === 0 ? first : `${first} ${rest} ${smaller[0]}`
}

/** `≤ 50 ms`, `≤ 2 s`: the upper edge of the step that it was counted in. Undefined: longer than the last of them. */
export function atMostText(ms: number | undefined): string {
  if (ms === undefined) return '> 1 h'
  return `≤ ${ms < 1_000 ? `${ms} ms` : durationText(ms)}`
}

/** `2026-11-18 09:12:04 UTC` */
export function utcText(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `09:12:04.118` */
export function clockText(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 23)
}

export function dayText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}
