import { frame } from './framing.ts'

/**
 * The pairs of a query or of a form, decoded and sorted by name. Pairs of one name keep their order, since `a=1&a=2` is
 * a list to most servers. Decoded byte by byte: a UTF-8 decoder would make all broken sequences equal.
 */
export function framePairs(text: string | Uint8Array): Uint8Array {
  const bytes =
    typeof text === 'string' ? Buffer.from(text) : Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const pairs = bytes
    .toString('latin1')
    .split('&')
    .filter(pair => pair !== '')
    .map(readPair)
  // Array.sort is stable, and comparing strings of bytes compares bytes.
  pairs.sort(([a], [b]) => compare(a, b))
  return frame(pairs.flat().map(piece => Buffer.from(piece, 'latin1')))
}

function readPair(pair: string): [string, string] {
  const equals = pair.indexOf('=')
  if (equals === -1) return [decodePiece(pair), '']
  return [decodePiece(pair.slice(0, equals)), decodePiece(pair.slice(equals + 1))]
}

function decodePiece(piece: string): string {
  const spaced = piece.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  return spaced.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
