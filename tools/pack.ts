// npm run pack               builds the packages and writes their tarballs to dist/
// npm run pack -- <folder>   or to another folder
//
// The only way to pack: the manifest that users get differs from the workspace's, so `npm pack` in a package refuses.
import { fileURLToPath } from 'node:url'
import { resolve } from 'node:path'
import { packPackages } from './pack/pack-packages.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
for (const { tarball } of await packPackages(root, resolve(process.argv[2] ?? `${root}/dist`))) console.log(tarball)
