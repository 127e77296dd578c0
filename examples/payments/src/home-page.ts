/** `GET /`: what this is and what to try, as a page for browsers and as text for curl. */
import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { html } from 'hono/html'
import { type Guide, guideText, isCommand, purpose, type Step } from './guide.ts'

export function homePage(c: Context, guide: Guide | undefined): Response | Promise<Response> {
  if (guide === undefined) return c.text('The playground is starting.\n', 503)
  c.header('Vary', 'Accept')
  const wanted = accepts(c, { header: 'Accept', supports: ['text/plain', 'text/html'], default: 'text/plain' })
  return wanted === 'text/html' ? c.html(page(guide)) : c.text(guideText(guide))
}

function page({ about, steps }: Guide) {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>Latchkey playground</title>
        <style>
          body {
            font:
              16px/1.5 system-ui,
              sans-serif;
            max-width: 60rem;
            margin: 2rem auto;
            padding: 0 1rem;
            color-scheme: light dark;
          }
          pre {
            overflow-x: auto;
            padding: 0.5rem;
            border: 1px solid #8886;
          }
        </style>
      </head>
      <body>
        <h1>Latchkey playground</h1>
        <p>${purpose}</p>
        <p>Paste the commands into a terminal, in this order, and send them twice where you like. No money is real.</p>
        <p>${about}</p>
        <ol>
          ${steps.map(item)}
        </ol>
      </body>
    </html>`
}

function item({ says, does }: Step) {
  return html`<li>
    <p>${says}</p>
    ${does.map(line => (isCommand(line) ? html`<pre>${line}</pre>` : html`<p>${line}</p>`))}
  </li>`
}
