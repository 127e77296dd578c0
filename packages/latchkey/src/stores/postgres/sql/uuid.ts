/** Uuids as text and as bytes. By hand: every call asks for two of them, and `write` with 'hex' takes three times as long as these steps. */

export const uuidBytes = 16
const uuidLength = 36
const hyphen = 0x2d
/** In either half it makes a value that is not a byte. */
const noDigit = 0x100
/** The value of a hexadecimal digit, by its code. */
const digits = Uint16Array.from({ length: 128 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? noDigit : value
})

/** False: the text is no uuid, and what stands in the buffer means nothing. */
export function writeUuid(buffer: Buffer, start: number, text: string): boolean {
  let from = 0
  for (let at = start; at < start + uuidBytes; at += 1) {
    if (text.charCodeAt(from) === hyphen) from += 1
    const byte = (valueOfDigit(text, from) << 4) | valueOfDigit(text, from + 1)
    if (byte > 0xff) return false
    buffer[at] = byte
    from += 2
  }
  return from === text.length
}

export function isUuid(text: string): boolean {
  if (text.length !== uuidLength) return false
  for (let at = 0; at < uuidLength; at += 1) {
    const isRight = isHyphenAt(at) ? text.charCodeAt(at) === hyphen : valueOfDigit(text, at) !== noDigit
    if (!isRight) return false
  }
  return true
}

/** As the server writes it: in lower case. */
export function isWrittenUuid(text: string): boolean {
  if (!isUuid(text)) return false
  for (let at = 0; at < uuidLength; at += 1) if (isUpperCase(text.charCodeAt(at))) return false
  return true
}

function isUpperCase(code: number): boolean {
  return code >= 0x41 && code <= 0x5a
}

function isHyphenAt(at: number): boolean {
  return at === 8 || at === 13 || at === 18 || at === 23
}

function valueOfDigit(text: string, index: number): number {
  return digits[text.charCodeAt(index)] ?? noDigit
}
