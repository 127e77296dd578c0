/** The page of the playground: its files, and the routes behind its buttons. */
import { readFileSync } from 'node:fs'
import type { Hono } from 'hono'
import type { Env } from '../api.ts'
import type { Guide } from '../guide.ts'
import { type ControlParts, controlRoutes } from './controls.ts'
import { homePage } from './home-page.ts'

export interface PageParts extends ControlParts {
  /** What is there to try. Undefined until the server listens. */
  readonly guide: () => Guide | undefined
}

/** Nothing inline: what a payment is called comes from requests. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

export function pageRoutes(app: Hono<Env>, { guide, ...controls }: PageParts): void {
  app.get('/', c => {
    c.header('Content-Security-Policy', policy)
    return homePage(c, guide())
  })
  for (const [name, type] of [
    ['play.js', 'text/javascript; charset=utf-8'],
    ['play.css', 'text/css; charset=utf-8'],
  ] as const) {
    const text = readFileSync(new URL(name, import.meta.url), 'utf8')
    app.get(`/page/${name}`, c => c.body(text, 200, { 'content-type': type, 'x-content-type-options': 'nosniff' }))
  }
  controlRoutes(app, controls)
}
