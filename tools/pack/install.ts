// Fills an application's node_modules without a registry: our packages from their tarballs, all others from where they are installed.
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'

export type Extracted = { name: string; extracted: string }

/** `installed`: folders of packages, such as a node_modules; the first to have a name wins. */
export function installPackages(app: string, ours: readonly Extracted[], installed: readonly string[]): void {
  for (const { name, extracted } of ours) cpSync(extracted, placeOf(app, name), { recursive: true })
  for (const folder of installed) {
    for (const name of packagesIn(folder)) {
      const place = placeOf(app, name)
      if (!existsSync(place)) symlinkSync(join(folder, name), place)
    }
  }
}

function placeOf(app: string, name: string): string {
  const place = join(app, 'node_modules', name)
  mkdirSync(dirname(place), { recursive: true })
  return place
}

function packagesIn(folder: string): string[] {
  const names = readdirSync(folder).filter(name => !name.startsWith('.'))
  return names.flatMap(name =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map(part => `${name}/${part}`) : [name],
  )
}
