export const noDigit = -1

/** What a byte means as a hexadecimal digit, or `noDigit`. */
export function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : noDigit
}
