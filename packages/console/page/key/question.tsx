/** The operator's one question: did it happen? Asked about the open effect, or about the whole operation where there is none. */
import { useEffect, useState } from 'preact/hooks'
import type { AdminKey, TimelineEntry } from 'latchkey/admin'
import { useAct } from '../api/act.ts'
import { announce } from '../parts/announce.tsx'
import { TextField } from '../parts/field.tsx'
import { ProblemNote } from '../parts/problem.tsx'
import { hrefOf } from '../parts/route.ts'
import { type AnswerForm, emptyForm, settleBody } from './answer.ts'
import { Choices } from './choices.tsx'
import { storyOf } from './timeline.tsx'

interface QuestionProps {
  readonly row: AdminKey
  readonly entries: readonly TimelineEntry[]
  onDone(): void
}

/** What the person saw when they began to answer. */
interface Seen {
  readonly version: string
  /** What the story said. */
  readonly story: ReadonlySet<string>
  readonly openEffect: AdminKey['openEffect']
}

type Ended = 'recorded' | 'proposed'

/** The form, kept with the version of the row that it is about: a row that moves under it is not answered by mistake. */
function useAnswer({ row, entries, onDone }: QuestionProps) {
  const [form, setForm] = useState<AnswerForm>(emptyForm)
  const [seen, setSeen] = useState<Seen>()
  const [fault, setFault] = useState<string>()
  const [ended, setEnded] = useState<Ended>()
  const act = useAct()
  const now: Seen = { version: row.version, story: new Set(entries.map(storyOf)), openEffect: row.openEffect }
  const about = seen ?? now
  function change(changed: Partial<AnswerForm>): void {
    setForm(before => ({ ...before, ...changed }))
    setFault(undefined)
    setEnded(undefined)
    setSeen(before => before ?? now)
  }
  function discard(): void {
    setForm(emptyForm)
    setSeen(undefined)
    act.clear()
  }
  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    const made = settleBody(form, about.openEffect)
    if ('fault' in made) return setFault(made.fault)
    if (form.confirm !== firstFour(row)) return setFault(`Type ${firstFour(row)}, the beginning of the id, to confirm.`)
    const answer = await act.send({ path: `keys/${row.id}/settle`, version: about.version, body: made.body })
    onDone()
    if (answer.kind !== 'ok') return
    const isProposed = answer.value.kind === 'second-person-needed'
    setEnded(isProposed ? 'proposed' : 'recorded')
    announce(isProposed ? 'Proposed: a second person decides' : 'The answer is recorded')
    discard()
  }
  return { form, seen, about, fault, ended, act, change, discard, submit, goOn: () => setSeen(now) }
}

function firstFour({ id }: AdminKey): string {
  return id.slice(0, 4)
}

export function Question(props: QuestionProps) {
  const { row, entries } = props
  const { form, seen, about, fault, ended, act, change, discard, submit, goOn } = useAnswer(props)
  const mayAnswer = row.may.includes('settle.happened') || row.may.includes('settle.did_not_happen')
  const isAsked = row.state === 'unknown' && mayAnswer
  const hasMoved = seen !== undefined && seen.version !== row.version
  if (!isAsked && seen === undefined) return ended === undefined ? null : <EndNote ended={ended} />
  return (
    <form class="question" onSubmit={event => void submit(event)}>
      <h2>
        {about.openEffect === undefined
          ? `Did ${row.operation} happen?`
          : `Did ${about.openEffect.name} happen at the provider?`}
      </h2>
      {ended !== undefined && <EndNote ended={ended} />}
      {hasMoved && (
        <RowMoved
          row={row}
          isAsked={isAsked}
          since={recorded(entries).filter(line => !seen.story.has(line))}
          onContinue={goOn}
          onDiscard={discard}
        />
      )}
      <Choices form={form} onChange={change} row={row} openEffect={about.openEffect} />
      <TextField
        label="Reason"
        hint="kept in the audit"
        value={form.reason}
        onValue={reason => change({ reason })}
        isRequired
      />
      <TextField
        label={`Type ${firstFour(row)} to confirm`}
        value={form.confirm}
        onValue={confirm => change({ confirm })}
        isRequired
      />
      {fault !== undefined && <p class="note note-bad">{fault}</p>}
      {!hasMoved && <ProblemNote problem={act.problem} />}
      <button type="submit" disabled={act.isSending || hasMoved}>
        Record answer
      </button>
    </form>
  )
}

/** A refused attempt, such as this person's own, has changed nothing. */
function recorded(entries: readonly TimelineEntry[]): readonly string[] {
  return entries.filter(entry => entry.kind !== 'act' || entry.refused === undefined).map(storyOf)
}

function EndNote({ ended }: { ended: Ended }) {
  if (ended === 'recorded')
    return <p class="note note-good">The answer is recorded. The story above says what became of the row.</p>
  return (
    <p class="note note-good">
      Proposed: a second person decides. <a href={hrefOf('proposals')}>Proposals</a>
    </p>
  )
}

interface RowMovedProps {
  readonly row: AdminKey
  readonly isAsked: boolean
  /** What the story has gained since this person began. */
  readonly since: readonly string[]
  onContinue(): void
  onDiscard(): void
}

/** Somebody was faster. Nothing of the form is lost, and nothing is sent until this person has read what was recorded. */
function RowMoved({ row, isAsked, since, onContinue, onDiscard }: RowMovedProps) {
  useEffect(() => announce('The row has moved. Your answer was not recorded; what you entered is still here.'), [])
  return (
    <div class="note note-bad" role="group" aria-label="Row moved">
      <p>
        <strong>row-moved</strong> The row is {row.state.replaceAll('_', ' ')} now. Your answer was not recorded; what
        you entered is still here.
      </p>
      {since.length > 0 && (
        <ul>
          {since.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <div class="bar">
        {isAsked && (
          <button type="button" onClick={onContinue}>
            I have read it, answer for the row as it is now
          </button>
        )}
        <button type="button" class="quiet" onClick={onDiscard}>
          Discard my answer
        </button>
      </div>
    </div>
  )
}
