import { framePieces } from './framing.ts'
import { hexDigit, noDigit } from './json/scalar.ts'

/**
 * The pairs of a query or of a form, decoded and sorted by name. Pairs of the same name retain their order, since `a=1&a=2` is a list
 * to most servers. They are decoded byte by byte: a UTF-8 decoder would make all broken sequences equal.
 */
export function framePairs(text: string | Uint8Array): Uint8Array {
  const bytes =
    typeof text === 'string' ? Buffer.from(text) : Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const pairs: [string, string][] = []
  for (const pair of bytes.toString('latin1').split('&')) if (pair !== '') pairs.push(readPair(pair))
  // Array.sort is stable, and comparing strings of bytes compares bytes.
  pairs.sort((a, b) => compare(a[0], b[0]))
  const pieces: string[] = []
  for (const pair of pairs) pieces.push(pair[0], pair[1])
  return framePieces(pieces)
}

function readPair(pair: string): [string, string] {
  const equals = pair.indexOf('=')
  if (equals === -1) return [decodePiece(pair), '']
  return [decodePiece(pair.slice(0, equals)), decodePiece(pair.slice(equals + 1))]
}

function decodePiece(piece: string): string {
  const spaced = piece.includes('+') ? piece.replaceAll('+', ' ') : piece
  return spaced.includes('%') ? decodeEscapes(Buffer.from(spaced, 'latin1')) : spaced
}

/** In place, since the text only becomes shorter. What is not an escape stands for itself. */
function decodeEscapes(bytes: Buffer): string {
  let length = 0
  for (let at = 0; at < bytes.length; at++, length++) {
    const byte = bytes[at] ?? 0
    const high = byte === 0x25 ? hexDigit(bytes[at + 1] ?? 0) : noDigit
    const low = high === noDigit ? noDigit : hexDigit(bytes[at + 2] ?? 0)
    bytes[length] = low === noDigit ? byte : high * 16 + low
    if (low !== noDigit) at += 2
  }
  return bytes.toString('latin1', 0, length)
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
