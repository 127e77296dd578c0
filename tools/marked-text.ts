/** Text between two marks of a document, which a tool writes. */

export interface Marks {
  readonly start: string
  readonly end: string
}

export function textBetween(document: string, { start, end }: Marks): string {
  const [, rest] = split(document, start)
  const [text] = split(rest, end)
  return text.trim()
}

export function withTextBetween(document: string, { start, end }: Marks, text: string): string {
  const [before, rest] = split(document, start)
  const [, after] = split(rest, end)
  return `${before}${start}\n${text}\n${end}${after}`
}

function split(text: string, mark: string): readonly [string, string] {
  const at = text.indexOf(mark)
  if (at < 0) throw new Error(`the mark ${mark} is missing: put it back where the text belongs`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}
