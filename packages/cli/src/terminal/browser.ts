/** Hands an address to the browser of the person, where there is one. */
import { spawn } from 'node:child_process'

const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** An opener that has not failed by then has a browser to wait for. */
const failsWithinMs = 2_000

/** False: there is no program that opens addresses, or it says that it cannot. Never rejects. */
export function openBrowser(url: string): Promise<boolean> {
  const [program, ...args] = openers[process.platform] ?? ['xdg-open']
  return new Promise(resolve => {
    const opener = spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    const limit = setTimeout(() => resolve(true), failsWithinMs)
    const end = (isOpen: boolean) => {
      clearTimeout(limit)
      resolve(isOpen)
    }
    opener.once('error', () => end(false))
    opener.once('exit', code => end(code === 0))
    // The browser may outlive this program.
    opener.unref()
  })
}
