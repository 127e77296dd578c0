/** The options of one call, read by name: what is not there is undefined, and what does not fit is a usage error. */
import { parseDuration } from './duration.ts'
import { usage } from './exit.ts'

export interface Flags {
  has(name: string): boolean
  text(name: string): string | undefined
  /** A usage error without it. */
  needed(name: string): string
  durationMs(name: string): number | undefined
  count(name: string): number | undefined
  list(name: string): readonly string[] | undefined
}

/** `values`: as the parser returns them, by name in camel case. */
export function flagsOf(values: Readonly<Record<string, unknown>>): Flags {
  const value = (name: string) => values[name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]
  const text = (name: string) => {
    const found = value(name)
    return typeof found === 'string' ? found : undefined
  }
  return {
    has: name => value(name) === true,
    text,
    needed(name) {
      const found = text(name)
      if (found === undefined || found.trim() === '') throw usage(`--${name} is missing`)
      return found
    },
    durationMs(name) {
      const found = text(name)
      return found === undefined ? undefined : parseDuration(`--${name}`, found)
    },
    count(name) {
      const found = text(name)
      if (found === undefined) return undefined
      if (/^\d{1,9}$/.test(found)) return Number(found)
      throw usage(`--${name} must be a whole number (got ${found})`)
    },
    list: name =>
      text(name)
        ?.split(',')
        .map(part => part.trim())
        .filter(part => part !== ''),
  }
}
