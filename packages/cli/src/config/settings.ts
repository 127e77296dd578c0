/** The settings of one call, and where each comes from: flag, environment, the profile of a file, a file, the default. */
import { resolve } from 'node:path'
import { usage } from '../program/exit.ts'
import type { Flags } from '../program/flags.ts'
import type { Config, Profile } from './config.ts'
import { nearestConfig, userConfig } from './files.ts'
import { loadConfigFile } from './load-file.ts'

export interface Setting {
  readonly value: string | undefined
  /** `flag --store`, `LATCHKEY_STORE`, the path of a file, `default`. */
  readonly origin: string
}

export type SettingName = keyof Profile

export interface Settings {
  readonly of: Readonly<Record<SettingName, Setting>>
  /** The nearest file with an application, if there is one. */
  readonly application: Config['application']
  readonly files: readonly string[]
}

export interface SettingsInput {
  readonly flags: Flags
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

const defaults: Readonly<Record<SettingName, string | undefined>> = {
  store: 'DATABASE_URL',
  schema: 'latchkey',
  server: undefined,
  tokenFile: undefined,
  timeout: '30s',
  color: 'auto',
  utc: 'false',
}

export const settingNames: readonly SettingName[] = [
  'store',
  'schema',
  'server',
  'tokenFile',
  'timeout',
  'color',
  'utc',
]

/** What a flag and a variable are called: `token-file`, `LATCHKEY_TOKEN_FILE`. */
export const flagOf = (name: string): string => name.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
const variableOf = (name: string) => `LATCHKEY_${flagOf(name).replaceAll('-', '_').toUpperCase()}`

interface Source {
  readonly origin: (name: SettingName) => string
  readonly value: (name: SettingName) => unknown
}

export async function readSettings(input: SettingsInput): Promise<Settings> {
  const { flags, env } = input
  const files = await configFiles(input)
  const profile = flags.text('profile') ?? env['LATCHKEY_PROFILE']
  const sources = [flagSource(flags), environmentSource(env), ...fileSources(files, profile)]
  const entries = settingNames.map(name => [name, settingOf(sources, name)] as const)
  return {
    // One entry for each name.
    of: Object.fromEntries(entries) as Record<SettingName, Setting>,
    application: files.find(({ config }) => config.application !== undefined)?.config.application,
    files: files.map(({ file }) => file),
  }
}

function settingOf(sources: readonly Source[], name: SettingName): Setting {
  const source = sources.find(each => each.value(name) !== undefined)
  if (source === undefined) return { value: defaults[name], origin: 'default' }
  return { value: String(source.value(name)), origin: source.origin(name) }
}

function flagSource(flags: Flags): Source {
  return {
    origin: name => `flag --${flagOf(name)}`,
    value: name => (name === 'utc' ? flags.has('utc') || undefined : flags.text(flagOf(name))),
  }
}

/** An empty variable is as good as none. */
function environmentSource(env: NodeJS.ProcessEnv): Source {
  return { origin: name => variableOf(name), value: name => env[variableOf(name)] || undefined }
}

interface LoadedFile {
  readonly file: string
  readonly config: Config
}

async function configFiles({ flags, env, cwd }: SettingsInput): Promise<readonly LoadedFile[]> {
  const named = flags.text('config') ?? env['LATCHKEY_CONFIG']
  const near = named === undefined ? nearestConfig(cwd) : resolve(cwd, named)
  const files = [near, userConfig(env)].filter(file => file !== undefined)
  return Promise.all(files.map(async file => ({ file, config: await loadConfigFile(file) })))
}

/** In each file the profile comes first. */
function fileSources(files: readonly LoadedFile[], profile: string | undefined): readonly Source[] {
  if (profile !== undefined && files.every(({ config }) => config.profiles?.[profile] === undefined)) {
    const where =
      files.length === 0 ? 'there is no configuration file' : `not in ${files.map(({ file }) => file).join(', ')}`
    throw usage(`there is no profile ${profile}: ${where}`)
  }
  return files.flatMap(({ file, config }) => {
    const chosen = profile === undefined ? undefined : config.profiles?.[profile]
    return [
      { origin: () => `${file}, profile ${profile}`, value: (name: SettingName) => chosen?.[name] },
      { origin: () => file, value: (name: SettingName) => config[name] },
    ]
  })
}
