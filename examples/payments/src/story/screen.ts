/** The story's output: colours and a spinner on a terminal, plain lines elsewhere, one line per scene when quiet. */
import { setTimeout as delay } from 'node:timers/promises'
import { styleText } from 'node:util'
import type { Answer } from './client.ts'
import type { Facts } from './facts.ts'
import type { Performance, Telling } from './play-scene.ts'
import type { Scene } from './scene.ts'
import { problemOf, whyOf } from './why.ts'

export interface Screen extends Telling {
  open(number: number, scene: Scene): void
  close(performance: Performance, number: number): Promise<void>
  print(line: string): void
}

type Colour = 'bold' | 'dim' | 'green' | 'red' | 'cyan' | 'yellow'
type Paint = (colour: Colour, text: string) => string

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const frameMs = 90
/** Slow enough to follow. */
const revealMs = 120

export function openScreen({ quiet, stream }: { quiet: boolean; stream: NodeJS.WriteStream }): Screen {
  const live = stream.isTTY && !quiet
  const coloured = stream.isTTY && !process.env['NO_COLOR']
  const paint: Paint = (colour, text) => (coloured ? styleText(colour, text) : text)
  const spinner = spinnerOn(live ? stream : undefined)
  const print = (line: string) => {
    spinner.stop()
    stream.write(`${line}\n`)
  }
  const row = (label: string, text: string) => print(`  ${paint('dim', label.padEnd(7))} ${text}`)
  return {
    print,
    tell(line) {
      spinner.spin(`  ${paint('dim', line)}`)
    },
    saw(answer) {
      if (!quiet) row('client', answerLine(answer, paint))
    },
    happened(who, what) {
      if (!quiet) row(who, what)
    },
    open(number, { title, premise }) {
      if (!quiet) print(`\n${paint('bold', `${number}. ${title}`)}\n  ${premise}`)
    },
    async close(performance, number) {
      if (quiet) return print(quietLine(performance, number))
      for (const facts of performance.facts) {
        for (const [label, text] of factLines(facts)) {
          if (live) await delay(revealMs)
          row(label, text)
        }
      }
      for (const complaint of performance.complaints) print(`  ${paint('red', `✗ ${complaint}`)}`)
      if (performance.complaints.length === 0) print(`  ${paint('green', `✓ ${countLine(performance.facts)}`)}`)
    },
  }
}

function answerLine({ wish, status, text, replayed }: Answer, paint: Paint): string {
  const colour = status === 201 ? 'green' : status === undefined ? 'red' : 'yellow'
  const shown = `${status ?? '---'} ${problemOf(text)}${replayed ? ' (replayed)' : ''}`
  return `${wish.account} POST ${wish.path} ${wish.amount} → ${paint(colour, shown)}`
}

function factLines(facts: Facts): [string, string][] {
  const { wish, charges, row, step, evidence, payments } = facts
  const listed = charges.map(({ id, key }) => `${id} under ${key.slice(0, 8)}…`).join(', ')
  const stored = evidence.map(
    ({ source, verdict, applied }) => `${source}: ${verdict}${applied ? '' : ' (not applied)'}`,
  )
  const rowLine =
    row === undefined
      ? 'no row'
      : `${row.operation} ${row.state} · attempts ${row.attempts} · fence ${row.fence}` +
        (step === undefined ? '' : ` · last step ${step}`) +
        (stored.length === 0 ? '' : ` · evidence ${stored.join(', ')}`)
  const shop = payments
    .map(({ id, charge }) => ` · ${wish.path.slice(1, -1)} ${id} with ${charge ?? 'no charge'}`)
    .join('')
  const charged = `${charges.length} of ${wish.amount} for ${wish.account}`
  return [
    ['ledger', charges.length === 0 ? charged : `${charged}: ${listed}`],
    ...(wish.rightful ? ([['tables', rowLine + shop]] as [string, string][]) : []),
    ['why', whyOf(facts)],
  ]
}

function quietLine({ scene, facts, complaints, seconds }: Performance, number: number): string {
  const end = complaints.length === 0 ? countLine(facts) : complaints.join('; ')
  return `${complaints.length === 0 ? 'ok    ' : 'FAILED'} ${number}. ${scene.title}: ${end} (${seconds.toFixed(1)} s)`
}

export function countLine(facts: readonly Facts[]): string {
  const sum = (count: (each: Facts) => number) => facts.reduce((total, each) => total + count(each), 0)
  const [intents, charges] = [sum(each => each.intents), sum(each => each.charges.length)]
  return `${intents} ${intents === 1 ? 'intent' : 'intents'}, ${charges} ${charges === 1 ? 'charge' : 'charges'}`
}

function spinnerOn(stream: NodeJS.WriteStream | undefined): { spin(line: string): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const stop = () => {
    if (timer === undefined) return
    clearInterval(timer)
    timer = undefined
    stream?.write('\r\u001B[2K')
  }
  return {
    stop,
    spin(line) {
      stop()
      if (stream === undefined) return
      let frame = 0
      timer = setInterval(() => stream.write(`\r\u001B[2K${frames[frame++ % frames.length]}${line}`), frameMs)
    },
  }
}
