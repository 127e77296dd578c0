// The packages as users get them, packed once for all checks that ask.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PackedPackage, packPackages } from '../pack/pack-packages.ts'
import { run } from './process.ts'

/** `extracted`: the folder with the tarball's files, as npm would write it to node_modules. */
export type UnpackedPackage = PackedPackage & { extracted: string }

const packing = new Map<string, Promise<UnpackedPackage[]>>()

export function packOnce(root: string): Promise<UnpackedPackage[]> {
  const packed = packing.get(root) ?? packAndExtract(root, scratchFolder('latchkey-packed-'))
  packing.set(root, packed)
  return packed
}

export async function packAndExtract(root: string, folder: string): Promise<UnpackedPackage[]> {
  const packed = await packPackages(root, folder)
  return Promise.all(
    packed.map(async each => {
      const extracted = join(folder, each.name)
      mkdirSync(extracted, { recursive: true })
      const ran = await run('tar', ['-xzf', each.tarball, '--strip-components=1', '-C', extracted], folder)
      if (ran.code !== 0) throw new Error(`tar could not extract ${each.tarball}: ${ran.output}`)
      return { ...each, extracted }
    }),
  )
}

/** A temporary folder that is removed when the process ends: several checks share what is in it. */
export function scratchFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
