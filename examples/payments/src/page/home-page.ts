/** `GET /`: what this is and what to try, as a page for browsers and as text for curl. */
import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { html } from 'hono/html'
import { type Guide, guideText, isCommand, purpose, type Step } from '../guide.ts'

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
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Latchkey playground</title>
        <link rel="stylesheet" href="page/play.css" />
        <script type="module" src="page/play.js"></script>
      </head>
      <body>
        <h1>Latchkey playground</h1>
        <p>${purpose} No money is real.</p>
        <p>${about}</p>
        <p>
          <a href="console/">The operators' console</a> of this shop. The first time, use the link that was printed at
          the start: it signs this browser in.
        </p>
        <fieldset>
          <legend>Tenant</legend>
          <label><input type="radio" name="tenant" value="acme" checked /> acme</label>
          <label><input type="radio" name="tenant" value="globex" /> globex</label>
        </fieldset>
        <div class="buttons">
          <button type="button" data-act="pay">Pay</button>
          <button type="button" data-act="twice">Pay twice at once</button>
          <button type="button" data-act="other">Pay, then the same key with another body</button>
          <button type="button" data-act="kill" id="kill">Pay, and kill the provider</button>
          <button type="button" data-act="cut">Pay out, and cut the answer</button>
          <button type="button" data-act="database">Pause the database, and pay</button>
        </div>
        <p id="world">Looking for the provider…</p>
        <p id="said" role="status"></p>
        <h2>What happened</h2>
        <ul id="strip"></ul>
        <h2>Scenes of the story</h2>
        <p>
          Each runs in a shop of its own. At its end the charges are counted: there must be exactly as many as intended.
        </p>
        <ul id="scenes"></ul>
        <pre id="scene" tabindex="0" aria-label="The scene that is played"></pre>
        <details>
          <summary>The same with curl</summary>
          <p>Paste the commands into a terminal, in this order, and send them twice where you like.</p>
          <ol>
            ${steps.map(item)}
          </ol>
        </details>
      </body>
    </html>`
}

function item({ says, does }: Step) {
  return html`<li>
    <p>${says}</p>
    ${does.map(line => (isCommand(line) ? html`<pre>${line}</pre>` : html`<p>${line}</p>`))}
  </li>`
}
