/** A copy of the working tree to break. Installed packages are linked, not copied; workspaces are linked within the copy. */
import { cpSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { basename, join, relative } from 'node:path'

const notCopied = new Set(['.git', 'dist', 'coverage', 'results'])

export function copyTree(root: string, to: string): void {
  const installed: string[] = []
  cpSync(root, to, {
    recursive: true,
    verbatimSymlinks: true,
    filter: from => {
      if (basename(from) === 'node_modules') installed.push(relative(root, from))
      return basename(from) !== 'node_modules' && !notCopied.has(basename(from))
    },
  })
  for (const folder of installed) linkPackages(join(root, folder), join(to, folder))
}

function linkPackages(from: string, to: string): void {
  mkdirSync(to)
  for (const name of readdirSync(from)) {
    const [source, link] = [join(from, name), join(to, name)]
    // Caches of tools, which write there.
    if (name.startsWith('.')) continue
    // A workspace of ours: the same relative link leads to the copy of it.
    if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source), link)
    else if (name.startsWith('@')) linkPackages(source, link)
    else symlinkSync(source, link)
  }
}
