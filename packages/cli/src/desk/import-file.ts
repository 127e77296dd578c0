/** A provider's export, and what its columns mean: `--map match=downstream_key:client_ref,status=state,happened=paid`. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ImportFile } from 'latchkey/admin'
import { usage } from '../program/exit.ts'

export const mapHelp =
  'match=<downstream_key|reference|id>:<column>, status=<column>, happened=<values>, did-not-happen=<values>, reference=<column>, value=<column>; values separated by |'

const parts = ['match', 'status', 'happened', 'did-not-happen', 'reference', 'value']
const matches: readonly string[] = ['downstream_key', 'reference', 'id']

export function importFile(cwd: string, file: string, map: string): ImportFile {
  const given = new Map(map.split(',').map(pair => partOf(pair.trim())))
  const [by = '', column = ''] = (given.get('match') ?? '').split(':')
  const status = given.get('status')
  if (!matches.includes(by) || column === '') throw usage(`--map needs match=<${matches.join('|')}>:<column>`)
  if (status === undefined) throw usage('--map needs status=<column>')
  const reference = given.get('reference')
  const value = given.get('value')
  return {
    csv: textOf(resolve(cwd, file)),
    // One of the three.
    match: { by: by as ImportFile['match']['by'], column },
    status: {
      column: status,
      happened: valuesOf(given.get('happened')),
      didNotHappen: valuesOf(given.get('did-not-happen')),
    },
    ...(reference === undefined ? {} : { reference }),
    ...(value === undefined ? {} : { value }),
  }
}

function partOf(pair: string): [string, string] {
  const [, name = '', value = ''] = /^([a-z-]+)=(.+)$/.exec(pair) ?? []
  if (parts.includes(name)) return [name, value]
  throw usage(`--map does not know ${pair}: ${mapHelp}`)
}

const valuesOf = (text: string | undefined): readonly string[] => (text === undefined ? [] : text.split('|'))

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw usage(`${path} cannot be read: ${(error as Error).message}`)
  }
}
