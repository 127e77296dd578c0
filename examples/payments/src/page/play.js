/** The page of the playground: buttons on the left, and for every payment what the client saw, what its row says, and what the ledger says. */

const tenants = { acme: 'demo-acme', globex: 'demo-globex' }
/** How many payments are followed. */
const shownMax = 12
const followEveryMs = 700
/** A payment that is not settled by then is left to the operator. */
const followForMs = 90_000
const payments = []
let amount = 1_000 + Math.floor(performance.timeOrigin % 8_000)

const at = id => document.getElementById(id)
const tenant = () => document.querySelector('input[name=tenant]:checked').value

function element(name, text, className = '') {
  const made = document.createElement(name)
  made.textContent = text
  if (className !== '') made.className = className
  return made
}

const headersOf = account => ({ authorization: `Bearer ${tenants[account]}`, 'content-type': 'application/json' })

async function control(path, body = {}) {
  const response = await fetch(`play/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  say(response.ok ? '' : (await response.json()).error)
  return response.ok
}

function say(text) {
  at('said').textContent = text
}

/** One press is one payment: its key belongs to the intent, and every retry uses it. */
function begin(path, what) {
  amount += 1
  const payment = {
    path,
    what,
    account: tenant(),
    key: `page-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`,
    amount,
    row: element('li', ''),
    startedMs: performance.now(),
  }
  payments.unshift(payment)
  draw(payment)
  at('strip').prepend(payment.row)
  for (const old of payments.splice(shownMax)) old.row.remove()
  return payment
}

function draw(payment) {
  const { row, what, account, amount: sent, saw = [], rowSays = 'nothing yet', ledgerSays = 'nothing yet' } = payment
  const seen = element('ol', '')
  seen.append(...saw.map(line => element('li', line)))
  const cells = [
    [`${what}: ${sent}, ${account}`, element('strong', '')],
    ['the client saw', seen],
    ['the row says', element('p', rowSays)],
    ['the ledger says', element('p', ledgerSays)],
  ]
  row.replaceChildren(
    ...cells.map(([head, body]) => {
      const cell = element('div', '')
      cell.append(element('h3', head), body)
      return cell
    }),
  )
}

async function send(payment, body = { amount: payment.amount }) {
  payment.saw = [...(payment.saw ?? []), '…']
  const line = payment.saw.length - 1
  draw(payment)
  const answer = await answerTo(payment, body)
  payment.saw[line] = answer
  draw(payment)
}

async function answerTo({ path, account, key }, body) {
  try {
    const response = await fetch(path, {
      method: 'POST',
      headers: { ...headersOf(account), 'idempotency-key': key },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    const replayed = response.headers.get('idempotent-replayed') === 'true' ? ', replayed' : ''
    return `${response.status}${replayed} ${codeIn(text)}`
  } catch {
    return 'no answer'
  }
}

function codeIn(text) {
  try {
    const { type, charge, transfer, error } = JSON.parse(text)
    return charge ?? transfer ?? error ?? String(type ?? '').replace(/^.*[:/#]/, '')
  } catch {
    return ''
  }
}

async function follow(payment) {
  const { path, account, key, amount: sent } = payment
  const headers = headersOf(account)
  const [shown, ledger] = await Promise.all([
    readJson(`operator/rows/${path}.create/${key}`, headers),
    readJson('ledger', headers),
  ])
  if (shown !== undefined) {
    const evidence = shown.evidence.map(({ source, verdict }) => `${source}: ${verdict}`)
    const state = shown.row?.state ?? 'no row'
    payment.rowSays = [state, ...evidence].join(' · ')
    payment.isSettled = state === 'completed'
  }
  if (ledger !== undefined) {
    const charges = ledger.filter(charge => charge.amount === sent).length
    payment.ledgerSays = `${charges} ${charges === 1 ? 'charge' : 'charges'}`
  }
  draw(payment)
}

async function readJson(path, headers) {
  try {
    const response = await fetch(path, { headers })
    return response.ok ? await response.json() : undefined
  } catch {
    return undefined
  }
}

/** Retries as a patient client does, until the answer is there. */
async function payUntilDone(payment) {
  await send(payment)
  while (!payment.isSettled && performance.now() - payment.startedMs < followForMs) await pause(500)
  await send(payment)
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

const acts = {
  pay: () => send(begin('payments', 'pay')),
  async twice() {
    const payment = begin('payments', 'pay twice')
    await Promise.all([send(payment), send(payment)])
  },
  async other() {
    const payment = begin('payments', 'pay, then with another body')
    await send(payment)
    await send(payment, { amount: payment.amount + 5_000 })
  },
  async cut() {
    if (await control('fault', { kind: 'lose-response', requests: 1 }))
      await payUntilDone(begin('payouts', 'pay out, answer cut'))
  },
  async kill() {
    if (!(await control('fault', { kind: 'slow', ms: 4_000, requests: 1 }))) return
    const done = payUntilDone(begin('payments', 'pay, provider killed'))
    await pause(1_000)
    await control('kill')
    await done
  },
  async database() {
    if (!(await control('pause'))) return
    const payment = begin('payments', 'pay, database paused')
    await send(payment)
    say('The database comes back within ten seconds. Then the same key is sent again.')
    await pause(10_000)
    say('')
    await send(payment)
  },
}

for (const button of document.querySelectorAll('button[data-act]'))
  button.addEventListener('click', () => void acts[button.dataset.act]())

async function playScene(index, button) {
  const screen = at('scene')
  const buttons = document.querySelectorAll('#scenes button')
  for (const each of buttons) each.disabled = true
  screen.textContent = `Playing "${button.textContent}" in a shop of its own. It takes some seconds.\n`
  try {
    const response = await fetch(`play/scenes/${index}`, { method: 'POST' })
    const decoder = new TextDecoder()
    for await (const chunk of response.body) screen.textContent += decoder.decode(chunk, { stream: true })
  } finally {
    for (const each of buttons) each.disabled = false
  }
}

async function readWorld() {
  const world = await readJson('play/world', {})
  at('world').textContent = world === undefined ? 'The shop does not answer.' : `The provider is ${world.provider}.`
  return world
}

async function open() {
  const world = await readWorld()
  if (world === undefined) return
  at('kill').hidden = !world.canKill
  at('scenes').append(
    ...world.scenes.map(({ title, premise }, index) => {
      const line = element('li', '')
      const button = element('button', title)
      button.type = 'button'
      button.addEventListener('click', () => void playScene(index, button))
      line.append(button, element('span', ` ${premise}`))
      return line
    }),
  )
}

async function tick() {
  if (!document.hidden) {
    const young = payments.filter(({ startedMs }) => performance.now() - startedMs < followForMs)
    await Promise.all([readWorld(), ...young.map(follow)])
  }
  setTimeout(() => void tick(), followEveryMs)
}

await open()
void tick()
