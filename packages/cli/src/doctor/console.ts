/** Whether the admin API answers somebody who has not signed in. */
import type { Context } from '../program/context.ts'
import { type Check, type Finding, skip } from './finding.ts'

type Knocking = Pick<Context, 'settings' | 'timeoutMs' | 'signal'>

export function consoleCheck({ settings, timeoutMs, signal }: Knocking): Check {
  const server = settings.of.server.value
  return {
    name: 'console',
    async look() {
      if (server === undefined) return skip('no server is configured: give --server, and it is asked without a sign-in')
      if (!URL.canParse(server)) return [unreachable(server, 'this is no address')]
      const mount = server.endsWith('/') ? server : `${server}/`
      return [await knock(new URL('api/v1/overview', mount), AbortSignal.any([AbortSignal.timeout(timeoutMs), signal]))]
    },
  }
}

/** Without a token and without a cookie. A page with a form to sign in at is no answer. */
async function knock(url: URL, signal: AbortSignal): Promise<Finding> {
  try {
    const { ok: isAnswered, headers, body } = await fetch(url, { signal, redirect: 'manual' })
    await body?.cancel()
    const isOpen = isAnswered && /^application\/json\b/.test(headers.get('content-type') ?? '')
    return isOpen ? open(url) : closed(url)
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    return unreachable(url.origin, String(cause))
  }
}

function closed({ origin }: URL): Finding {
  return { verdict: 'ok', text: `${origin} shows nothing without a sign-in` }
}

function open({ href }: URL): Finding {
  return {
    verdict: 'FAIL',
    text: `${href} answers without a sign-in`,
    cure: 'authorize of adminRoutes must return null for who is not signed in, and no proxy in front may sign everybody in',
  }
}

function unreachable(address: string, why: string): Finding {
  return {
    verdict: 'warn',
    text: `${address} could not be asked: ${why}`,
    cure: 'check --server, and that the application runs',
  }
}
