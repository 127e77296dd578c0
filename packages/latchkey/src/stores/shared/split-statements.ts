/** The statements of one SQL text. What stands in quotes and comments splits nothing. */

export function splitStatements(text: string): readonly string[] {
  const statements: string[] = []
  let start = 0
  for (let at = 0; at < text.length;) {
    if (text[at] !== ';') {
      at = behindToken(text, at)
      continue
    }
    statements.push(text.slice(start, at))
    at += 1
    start = at
  }
  statements.push(text.slice(start))
  return joinBodies(statements.map(withoutLeadingComments).filter(statement => statement !== ''))
}

function behindToken(text: string, at: number): number {
  switch (text[at]) {
    case "'":
      return /\b[eE]$/.test(text.slice(Math.max(0, at - 2), at))
        ? behindEscapeString(text, at)
        : behind(text, "'", at + 1)
    case '"':
    case '`':
      return behind(text, text[at] ?? '', at + 1)
    case '-':
      return text[at + 1] === '-' ? behind(text, '\n', at + 2) : at + 1
    case '/':
      return text[at + 1] === '*' ? behindComment(text, at) : at + 1
    case '$':
      return behindDollarQuoted(text, at)
    default:
      return at + 1
  }
}

/** A doubled quote ends one token and begins the next, which comes to the same. */
function behind(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from)
  return found === -1 ? text.length : found + end.length
}

function behindEscapeString(text: string, quote: number): number {
  let at = quote + 1
  while (at < text.length && text[at] !== "'") at += text[at] === '\\' ? 2 : 1
  return at + 1
}

/** PostgreSQL nests them, SQLite does not; a nested one is rare enough to go by PostgreSQL. */
function behindComment(text: string, from: number): number {
  const edge = /\/\*|\*\//g
  edge.lastIndex = from
  let depth = 0
  for (let found = edge.exec(text); found !== null; found = edge.exec(text)) {
    depth += found[0] === '/*' ? 1 : -1
    if (depth === 0) return edge.lastIndex
  }
  return text.length
}

function behindDollarQuoted(text: string, at: number): number {
  const tag = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y
  tag.lastIndex = at
  const found = tag.exec(text)?.[0]
  return found === undefined ? at + 1 : behind(text, found, at + found.length)
}

function withoutLeadingComments(statement: string): string {
  let at = 0
  while (at < statement.length) {
    if (/\s/.test(statement[at] ?? '')) at += 1
    else if (statement.startsWith('--', at) || statement.startsWith('/*', at)) at = behindToken(statement, at)
    else break
  }
  return statement.slice(at).trimEnd()
}

/** The body of a trigger of SQLite, or of a function in standard SQL: its statements belong to the one that creates it. */
const opensBody = /^create\b[\s\S]*\b(?:trigger\b[\s\S]*\bbegin|begin\s+atomic)\b/i

function joinBodies(statements: readonly string[]): readonly string[] {
  const joined: string[] = []
  let isInBody = false
  for (const statement of statements) {
    if (!isInBody) joined.push(statement)
    isInBody = isInBody ? !/^end\b/i.test(statement) : opensBody.test(statement)
  }
  return joined
}
