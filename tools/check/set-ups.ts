// Applications as strangers have them: a compiler, a version of Node's types, and the packages from their tarballs.
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { UnpackedPackage } from './packed.ts'

/** The versions that differ from the workspace's own are installed here. */
const OTHERS = 'test/types/node_modules'

export type SetUp = { name: string; compiler: string; nodeTypes: 'oldest' | 'newest' }

/** The oldest compiler and types that are supported, and what a plain `npm install` brings today. */
export const SET_UPS: readonly SetUp[] = [
  { name: 'TypeScript 5.4, @types/node 20', compiler: `${OTHERS}/typescript/bin/tsc`, nodeTypes: 'oldest' },
  { name: 'newest TypeScript, @types/node 20', compiler: 'node_modules/typescript/bin/tsc', nodeTypes: 'oldest' },
  { name: 'newest TypeScript and @types/node', compiler: 'node_modules/typescript/bin/tsc', nodeTypes: 'newest' },
]

export const RESOLUTIONS: readonly { module: string; moduleResolution: string }[] = [
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
]

/** What a strict application sets. Symbolic links stand for installed files here. */
export const STRICT = {
  target: 'es2022',
  lib: ['es2023'],
  strict: true,
  noEmit: true,
  types: ['node'],
  preserveSymlinks: true,
}

/** Fills `app/node_modules`: the workspace's packages, the set-up's types of Node, and our packages as they were packed. */
export function installSetUp(
  root: string,
  app: string,
  { nodeTypes }: SetUp,
  packed: readonly UnpackedPackage[],
): void {
  for (const { name, extracted } of packed) link(extracted, join(app, 'node_modules', name))
  if (nodeTypes === 'newest') linkAll(join(root, OTHERS), app)
  linkAll(join(root, 'node_modules'), app)
}

/** The first to bring a name wins. */
function linkAll(installed: string, app: string): void {
  for (const name of packagesIn(installed)) {
    const target = join(app, 'node_modules', name)
    if (!existsSync(target)) link(join(installed, name), target)
  }
}

function packagesIn(installed: string): string[] {
  const names = readdirSync(installed).filter(name => !name.startsWith('.'))
  return names.flatMap(name =>
    name.startsWith('@') ? readdirSync(join(installed, name)).map(part => `${name}/${part}`) : [name],
  )
}

function link(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  symlinkSync(from, to)
}
