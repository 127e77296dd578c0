// Who may import whom. The tables are the rule; the code below only reads them. Tests may import anything.
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import type { CheckOptions, Finding } from './finding.ts'
import { isTest, isTypeScript, listFiles, listWorkspaces } from './files.ts'
import { isRelative, LIBRARY, packageOf, readManifest, resolveRelative } from './library.ts'
import { importsOf, readSource } from './syntax.ts'
import type { ImportReference } from './syntax.ts'

/** Each folder of the library's src (`index` is src/index.ts; a row of its own wins over its parent's) and the folders it may import. */
const MAY_IMPORT: Record<string, readonly string[] | 'all'> = {
  index: ['engine', 'ports', 'telemetry'],
  ports: [],
  wire: [],
  engine: ['ports', 'wire'],
  'stores/shared': ['ports'],
  stores: ['ports', 'stores/shared'],
  http: ['engine', 'ports', 'wire'],
  inbox: ['engine', 'ports'],
  consumers: ['engine', 'ports', 'inbox'],
  openapi: ['engine', 'wire'],
  outbox: ['ports', 'stores/shared'],
  reconcile: ['ports', 'engine'],
  workers: ['ports', 'engine', 'outbox', 'reconcile'],
  admin: ['ports', 'engine', 'wire'],
  telemetry: ['ports'],
  client: ['wire'],
  cli: 'all',
}

/** Folders whose sub-folders are plugs. A plug uses its layer's shared files; no plug is imported by another or by shared files. */
const PLUGS: Record<string, readonly string[] | 'every folder'> = {
  stores: 'every folder',
  consumers: 'every folder',
  http: ['fetch', 'hono', 'express', 'fastify', 'nest', 'koa'],
  outbox: ['nats', 'rabbitmq', 'kafka'],
  telemetry: 'every folder',
}

/** Nest runs on Express or Fastify, so it captures with what those two already have. */
const SIBLINGS: Record<string, readonly string[]> = { 'http/nest': ['http/express', 'http/fastify'] }

/** Which folders may import a declared dependency. A new dependency needs a decision record and a row here. */
const THIRD_PARTY: Record<string, readonly string[]> = { 'structured-headers': ['wire'] }

export async function checkArchitecture({ root }: CheckOptions): Promise<Finding[]> {
  return [...checkLibrary(root), ...checkOutsiders(root)]
}

function checkLibrary(root: string): Finding[] {
  const manifest = readManifest(root, LIBRARY)
  const declared = { ...manifest.dependencies, ...manifest.peerDependencies }
  const files = listFiles(root, `${LIBRARY}/src`).filter(file => isTypeScript(file) && !isTest(file))
  return files.flatMap(file => {
    const layer = placeOf(file).layer
    if (MAY_IMPORT[layer] === undefined) {
      return [
        {
          file,
          message: `the folder "${layer}" has no row in MAY_IMPORT of tools/check/architecture.ts: add one, or move the file`,
        },
      ]
    }
    return importsOf(readSource(root, file)).flatMap(reference => {
      const problem = isRelative(reference.specifier)
        ? relativeProblem(root, file, reference)
        : packageProblem(layer, reference.specifier, declared)
      return problem === undefined ? [] : [{ file, line: reference.line, message: problem }]
    })
  })
}

function relativeProblem(root: string, file: string, { specifier }: ImportReference): string | undefined {
  const target = resolveRelative(root, file, specifier)
  if (target === undefined) return `imports "${specifier}", which does not exist: correct the path`
  if (isTest(target)) return `imports the test "${specifier}": move what both need into its own file`
  if (!specifier.endsWith('.ts') && !specifier.endsWith('.json'))
    return `imports "${specifier}": write the file's own name, ending in .ts`
  if (!target.startsWith(`${LIBRARY}/src/`))
    return `imports "${specifier}" from outside src: the published package would miss it`
  const from = placeOf(file)
  const to = placeOf(target)
  if (from.layer === to.layer) return plugProblem(from, to)
  const allowed = MAY_IMPORT[from.layer] ?? []
  if (allowed === 'all' || allowed.includes(to.layer)) return undefined
  const list = allowed.length === 0 ? 'nothing of ours' : `only ${allowed.join(', ')}`
  return `${from.layer} imports ${to.layer} ("${specifier}"), but ${from.layer} may import ${list}: pass it in through a port, or move the code`
}

function plugProblem(from: Place, to: Place): string | undefined {
  if (to.plug === undefined || from.plug === to.plug) return undefined
  if (from.plug !== undefined && SIBLINGS[from.plug]?.includes(to.plug)) return undefined
  const importer = from.plug ?? `the shared part of ${from.layer}`
  return `${importer} imports its sibling ${to.plug}: move what both need into a file that ${from.layer} shares, or a lower layer`
}

function packageProblem(layer: string, specifier: string, declared: Record<string, string>): string | undefined {
  if (specifier.startsWith('node:')) return undefined
  if (isBuiltin(specifier)) return `imports "${specifier}": write "node:${specifier}"`
  const name = packageOf(specifier)
  if (name === 'latchkey') return `imports "${specifier}" by the package's own name: use the relative path`
  if (declared[name] === undefined) {
    return `imports the package "${name}", which is not a declared dependency: let users pass it in, and type it by shape in driver.ts`
  }
  if (THIRD_PARTY[name]?.includes(layer)) return undefined
  return `${layer} imports "${name}", which is for ${THIRD_PARTY[name]?.join(', ') ?? 'no folder yet'}: see THIRD_PARTY in tools/check/architecture.ts`
}

/** Everything that is not the library sees it as its users do: by public subpath, never by a path into its files. */
function checkOutsiders(root: string): Finding[] {
  const outsiders = listWorkspaces(root).filter(folder => folder !== LIBRARY)
  return outsiders.flatMap(folder => {
    const files = listFiles(root, folder).filter(isTypeScript)
    return files.flatMap(file =>
      importsOf(readSource(root, file)).flatMap(({ specifier, line }) => {
        if (!isRelative(specifier)) return []
        const target = posix.join(posix.dirname(file), specifier)
        // The real servers that tests run against serve examples' tests and the benchmark, too.
        if (target.startsWith(`${folder}/`) || target.startsWith('test/servers/')) return []
        return [
          {
            file,
            line,
            message: `imports "${specifier}", outside ${folder}: import the public subpath "latchkey/…" instead`,
          },
        ]
      }),
    )
  })
}

type Place = { layer: string; plug: string | undefined }

function placeOf(file: string): Place {
  const [layer = '', folder = '', ...rest] = file.slice(`${LIBRARY}/src/`.length).split('/')
  if (MAY_IMPORT[`${layer}/${folder}`] !== undefined) return { layer: `${layer}/${folder}`, plug: undefined }
  if (folder === '') return { layer: layer.replace(/\.ts$/, ''), plug: undefined }
  const plugs = PLUGS[layer]
  const isPlug = rest.length > 0 && plugs !== undefined && (plugs === 'every folder' || plugs.includes(folder))
  return { layer, plug: isPlug ? `${layer}/${folder}` : undefined }
}
