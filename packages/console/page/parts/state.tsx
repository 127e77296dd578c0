/** A state is a sign and a word, so that nobody has to tell colours apart. */
import type { AdminRow } from 'latchkey/admin'

const signs: Readonly<Record<string, string>> = {
  pending: '○',
  in_progress: '▶',
  failed_retryable: '↻',
  unknown: '?',
  completed: '✓',
  unreadable: '!',
  parked: '‖',
  gone: '∅',
}

export function State({ state }: { state: string }) {
  return (
    <span class={`state state-${state}`}>
      <span aria-hidden="true">{signs[state] ?? '·'}</span> {state.replaceAll('_', ' ')}
    </span>
  )
}

export function RowStates({ row }: { row: Pick<AdminRow, 'state' | 'parked'> }) {
  return (
    <>
      <State state={row.state} /> {row.parked && <State state="parked" />}
    </>
  )
}
