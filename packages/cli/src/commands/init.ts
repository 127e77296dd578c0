import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configNames } from '../config/files.ts'
import type { CommandSpec } from '../program/command.ts'
import { CliError, exits } from '../program/exit.ts'

export const init: CommandSpec = {
  path: 'init',
  summary: 'writes latchkey.config.ts here; never overwrites one',
  async run({ context: { cwd, out, flags } }) {
    const existing = configNames.find(name => existsSync(join(cwd, name)))
    if (existing !== undefined) {
      throw new CliError(
        exits.refused,
        'exists',
        `${existing} is here already, and is not overwritten: edit it, or remove it first`,
      )
    }
    const project = readProject(cwd)
    const text = configText(project)
    const file = project.typescript ? 'latchkey.config.ts' : 'latchkey.config.js'
    // `wx`: one that appeared in the meantime stays as it is.
    if (!flags.has('dry-run')) writeFileSync(join(cwd, file), text, { flag: 'wx' })
    out.value({ file, store: project.store, driver: project.driver, framework: project.framework }, () => [text])
    out.talk(
      `${flags.has('dry-run') ? 'would write' : 'wrote'} ${file}${foundText(project)}. Next: latchkey migrate, then latchkey doctor`,
    )
    return exits.done
  },
}

interface Project {
  readonly typescript: boolean
  readonly store: string
  readonly driver: string | undefined
  readonly framework: string | undefined
}

/** The first that the project has is taken. */
const drivers: Readonly<Record<string, string>> = {
  pg: 'DATABASE_URL',
  postgres: 'DATABASE_URL',
  libsql: 'sqlite:./app.db',
  'better-sqlite3': 'sqlite:./app.db',
  ioredis: 'REDIS_URL',
  redis: 'REDIS_URL',
}

const frameworks: Readonly<Record<string, string>> = {
  '@nestjs/core': 'nest',
  hono: 'hono',
  fastify: 'fastify',
  express: 'express',
  koa: 'koa',
}

function readProject(cwd: string): Project {
  const file = join(cwd, 'package.json')
  // Written by npm; what is not there is not found.
  const manifest = (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}) as Record<
    string,
    object | undefined
  >
  const names = new Set(Object.keys({ ...manifest['dependencies'], ...manifest['devDependencies'] }))
  const driver = Object.keys(drivers).find(name => names.has(name))
  const framework = Object.keys(frameworks).find(name => names.has(name))
  return {
    typescript: names.has('typescript') || existsSync(join(cwd, 'tsconfig.json')),
    store: drivers[driver ?? 'pg'] ?? 'DATABASE_URL',
    driver,
    framework: framework === undefined ? undefined : frameworks[framework],
  }
}

function foundText({ driver, framework }: Project): string {
  const found = [driver, framework].filter(name => name !== undefined)
  return found.length === 0 ? '' : ` for ${found.join(' and ')}`
}

function configText({ typescript, store }: Project): string {
  const isVariable = /^\w+$/.test(store)
  const body = `{
  // ${isVariable ? 'The environment variable with the address of the store.' : 'The file of the store.'}
  store: '${store}',
  // What needs your code: latchkey work, latchkey unknown look-up, and what latchkey doctor says about operations.
  // application: async () => {
  //   const { latchkey, reconciler, pool } = await import('./src/latchkey.js')
  //   return { latchkey, reconciler, close: () => pool.end() }
  // },
}`
  if (typescript) return `import type { Config } from '@latchkey/cli'\n\nexport default ${body} satisfies Config\n`
  return `/** @type {import('@latchkey/cli').Config} */\nexport default ${body}\n`
}
