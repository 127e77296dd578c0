/** The type without its parameters, in lower case; empty when there is none. */
export function essenceOf(mediaType: string | undefined): string {
  if (mediaType === undefined || mediaType === 'application/json') return mediaType ?? ''
  return mediaType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** By its essence: RFC 8259, and the suffix of RFC 6839, section 3.1. */
export function isJson(essence: string): boolean {
  return essence === 'application/json' || essence.endsWith('+json')
}

const parameter = /;[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))[ \t]*/y

/**
 * The parameters of a header value such as Content-Type or Content-Disposition, names in lower case, quoted values as
 * they stand between the quotes. Undefined when the value is not of that form or names a parameter twice.
 */
export function readParameters(value: string): Map<string, string> | undefined {
  const start = value.indexOf(';')
  const parameters = new Map<string, string>()
  if (start === -1) return parameters
  parameter.lastIndex = start
  while (parameter.lastIndex < value.length) {
    const match = parameter.exec(value)
    const name = match?.[1]?.toLowerCase()
    if (match === null || name === undefined || parameters.has(name)) return undefined
    parameters.set(name, match[2] ?? match[3] ?? '')
  }
  return parameters
}
