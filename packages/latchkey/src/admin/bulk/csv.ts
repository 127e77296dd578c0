/** A provider's export: rows of named columns (RFC 4180), bounded. */

const rowsMax = 100_000

/** Undefined: a quote is not closed, or there is no header. Fields keep their bytes; a byte order mark and empty lines are dropped. */
export function parseCsv(given: string): readonly Readonly<Record<string, string>>[] | undefined {
  const lines = linesOf(given.replace(/^\uFEFF/, ''))
  const header = lines?.[0]
  if (lines === undefined || header === undefined) return undefined
  return lines
    .slice(1, rowsMax + 1)
    .map(fields => Object.fromEntries(header.map((name, at) => [name, fields[at] ?? ''])))
}

function linesOf(given: string): readonly (readonly string[])[] | undefined {
  const lines: string[][] = []
  let line: string[] = []
  let field = ''
  let quoted = false
  const endLine = () => {
    line.push(field)
    if (line.length > 1 || field !== '') lines.push(line)
    line = []
    field = ''
  }
  for (let at = 0; at < given.length; at += 1) {
    const character = given[at]
    if (quoted && character === '"' && given[at + 1] === '"') {
      field += '"'
      at += 1
    } else if (character === '"' && (quoted || field === '')) quoted = !quoted
    else if (!quoted && character === ',') {
      line.push(field)
      field = ''
    } else if (!quoted && character === '\n') endLine()
    else if (quoted || character !== '\r') field += character
  }
  if (quoted) return undefined
  endLine()
  return lines
}
