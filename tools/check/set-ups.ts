// Applications as strangers have them: a compiler, a version of Node's types, and the packages from their tarballs.
import { join } from 'node:path'
import { type Extracted, installPackages } from '../pack/install.ts'

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

/** The workspace's packages, the set-up's types of Node, and our packages as they were packed. */
export function installSetUp(root: string, app: string, { nodeTypes }: SetUp, packed: readonly Extracted[]): void {
  const others = nodeTypes === 'newest' ? [join(root, OTHERS)] : []
  installPackages(app, packed, [...others, join(root, 'node_modules')])
}
