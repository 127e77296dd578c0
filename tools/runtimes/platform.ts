/** Why this machine cannot run the binaries of test/runtimes; undefined if it can. */
export function whyNoRuntimes({ platform, arch }: Pick<NodeJS.Process, 'platform' | 'arch'> = process):
  | string
  | undefined {
  if (platform === 'linux' && arch === 'x64') return undefined
  return `the Node binaries of test/runtimes are for linux-x64, and this is ${platform}-${arch}`
}
