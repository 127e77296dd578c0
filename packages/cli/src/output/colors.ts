/** Four colours, or none. */
export interface Colors {
  good(text: string): string
  warn(text: string): string
  bad(text: string): string
  dim(text: string): string
}

export function colors(on: boolean): Colors {
  const paint = (code: number) => (text: string) => (on ? `\u001B[${code}m${text}\u001B[0m` : text)
  return { good: paint(32), warn: paint(33), bad: paint(31), dim: paint(2) }
}
