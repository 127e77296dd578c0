/** `respond-async` in the Prefer field (RFC 7240). */

/**
 * Whether a request prefers a 202 over waiting. Commas separate preferences over all lines of the field, their names are
 * case-insensitive, and parameters after a semicolon change nothing (RFC 7240, sections 2 and 4.1). `respond-async` has no value; an
 * empty one counts as none.
 */
export function prefersAsync(lines: readonly string[]): boolean {
  return lines.some(line => members(line).some(isRespondAsync))
}

function isRespondAsync(member: string): boolean {
  const [preference = ''] = split(member, ';')
  return /^[ \t]*respond-async[ \t]*(=[ \t]*("")?[ \t]*)?$/i.test(preference)
}

/** A bound on the work; clients send far fewer. */
const membersMax = 100

function members(line: string): string[] {
  return split(line, ',').slice(0, membersMax)
}

/** Ignores separators inside quotes: the value of another preference may contain our name. */
function split(text: string, at: ',' | ';'): string[] {
  const parts = ['']
  let quoted = false
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index)
    if (quoted && character === '\\') {
      parts[parts.length - 1] += text.slice(index, ++index + 1)
      continue
    }
    if (character === '"') quoted = !quoted
    if (character === at && !quoted) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}
