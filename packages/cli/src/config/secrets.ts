/** Where secrets come from, and how they look when they are shown. */
import { readFileSync } from 'node:fs'
import { usage } from '../program/exit.ts'
import type { Setting, Settings } from './settings.ts'

const looksLikeVariable = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The address of the store. A password must not be in a flag: `ps` and the history of the shell show it. */
export function storeUrl({ of: { store } }: Settings, env: NodeJS.ProcessEnv): string {
  const { value = '' } = store
  if (!looksLikeVariable.test(value)) return addressOf(store)
  const url = env[value]
  if (url !== undefined && url !== '') return url
  const origin = store.origin === 'default' ? 'the default of --store' : store.origin
  throw usage(
    `the environment variable ${value} is not set, and it must have the address of the store (${origin}). Set it, name another one with --store, or give an address such as --store sqlite:./app.db`,
  )
}

function addressOf({ value = '', origin }: Setting): string {
  if (!hasPassword(value)) return value
  throw usage(
    `the address of the store has a password, and it stands in ${origin}, where others can read it. Put the address into an environment variable, and give the name of that: --store DATABASE_URL`,
  )
}

/** In front of the host, or as a field of the query, which drivers take as well. */
function hasPassword(text: string): boolean {
  return masked(text) !== text
}

/** Undefined: none is configured. */
export function tokenOf({ of: { tokenFile } }: Settings, env: NodeJS.ProcessEnv): string | undefined {
  const given = env['LATCHKEY_TOKEN']
  if (given !== undefined && given !== '') return given
  if (tokenFile.value === undefined) return undefined
  try {
    return readFileSync(tokenFile.value, 'utf8').trim()
  } catch (error) {
    throw usage(`the token file ${tokenFile.value} (${tokenFile.origin}) cannot be read: ${(error as Error).message}`)
  }
}

const secretFields = /pass|secret|token|key/i
const hidden = '***'

/** An address as it may be shown: without its password. Where that has a bare `#`, no part of the address is what it looks like, and none is shown. */
export function masked(text: string): string {
  if (!URL.canParse(text) || new URL(text).hash !== '') return text.replace(/:\/\/.*$/s, `://${hidden}`)
  const url = new URL(text)
  const fields = [...url.searchParams.keys()].filter(name => secretFields.test(name))
  if (url.password === '' && fields.length === 0) return text
  if (url.password !== '') url.password = hidden
  for (const name of fields) url.searchParams.set(name, hidden)
  return url.href
}
