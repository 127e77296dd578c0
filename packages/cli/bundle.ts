// The program in one file: what users run, and what the tests run. Drivers stay outside, because they are the application's.
import { appendFileSync, chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** The parser is CommonJS, and asks for Node's modules by require. */
const requireOfNode = `import { createRequire as latchkeyRequire } from 'node:module'; const require = latchkeyRequire(import.meta.url);`

export async function bundleProgram(outfile: string): Promise<void> {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('src/bin.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    conditions: ['latchkey-source'],
    banner: { js: requireOfNode },
    legalComments: 'none',
    metafile: true,
    logLevel: 'silent',
  })
  appendFileSync(outfile, licences(Object.keys(metafile.inputs)))
  chmodSync(outfile, 0o755)
}

/** Of the packages that are in it, as their licences demand. `inputs`: relative to the folder that this runs in. */
function licences(inputs: readonly string[]): string {
  const folders = inputs.flatMap(file => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [])
  return [...new Set(folders)].map(licenceOf).join('')
}

function licenceOf(folder: string): string {
  const file = ['LICENSE', 'LICENSE.md', 'LICENCE'].map(name => join(folder, name)).find(name => existsSync(name))
  if (file === undefined) throw new Error(`${folder} is in the program, and has no licence to go with it`)
  const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
  return `/*\n${name}\n\n${readFileSync(file, 'utf8').replaceAll('*/', '* /').trim()}\n*/\n`
}
