/** The three answers, each with what it needs and what follows from it. */
import type { AdminKey } from 'latchkey/admin'
import { durationText } from '../parts/duration.ts'
import { ChoiceField, TextField } from '../parts/field.tsx'
import type { AnswerForm } from './answer.ts'

interface ChoicesProps {
  readonly form: AnswerForm
  readonly row: AdminKey
  readonly openEffect: AdminKey['openEffect']
  onChange(changed: Partial<AnswerForm>): void
}

const kinds = [
  ['ticket', 'ticket of the provider'],
  ['denial', "the provider's explicit denial"],
  ['export', 'export or dashboard'],
  ['other', 'something else'],
] as const

export function Choices({ form, row, openEffect, onChange }: ChoicesProps) {
  const choose = (answer: AnswerForm['answer']) => () => onChange({ answer })
  return (
    <fieldset>
      <legend>Answer</legend>
      {row.may.includes('settle.happened') && (
        <label class="check">
          <input type="radio" name="answer" checked={form.answer === 'happened'} onChange={choose('happened')} />{' '}
          <strong>Yes</strong> <span>then: {afterYes(row, openEffect)}</span>
        </label>
      )}
      {form.answer === 'happened' && <Happened form={form} openEffect={openEffect} onChange={onChange} />}
      <label class="check">
        <input
          type="radio"
          name="answer"
          checked={form.answer === 'did_not_happen'}
          onChange={choose('did_not_happen')}
        />{' '}
        <strong>No</strong>{' '}
        <span>
          then: {row.recovery === 'resume' ? 'the row is pending again' : 'failed retryable'}; a retry MAY{' '}
          {openEffect?.name.toUpperCase() ?? 'DO IT'} AGAIN
        </span>
      </label>
      {form.answer === 'did_not_happen' && <DidNotHappen form={form} row={row} onChange={onChange} />}
      <label class="check">
        <input
          type="radio"
          name="answer"
          checked={form.answer === 'still_unknown'}
          onChange={choose('still_unknown')}
        />{' '}
        <strong>Still unknown</strong> <span>then: your reason is stored as a note, and look-ups continue</span>
      </label>
    </fieldset>
  )
}

function afterYes({ recovery }: AdminKey, openEffect: AdminKey['openEffect']): string {
  return recovery === 'resume' && openEffect !== undefined
    ? `the result of ${openEffect.name} is recorded, the steps after it run, and clients get the outcome`
    : 'the row is completed, and clients get this answer'
}

type PartProps = Pick<ChoicesProps, 'form' | 'openEffect' | 'onChange'>

function Happened({ form, openEffect, onChange }: PartProps) {
  return (
    <div class="grid">
      <TextField
        label="Reference at the provider"
        value={form.reference}
        onValue={reference => onChange({ reference })}
        isRequired
      />
      {openEffect === undefined && (
        <TextField label="Status for clients" value={form.status} onValue={status => onChange({ status })} isRequired />
      )}
      <TextField
        label={openEffect === undefined ? 'JSON for clients' : 'Result, as the provider gave it'}
        hint="JSON"
        value={form.json}
        onValue={json => onChange({ json })}
        rows={3}
        isRequired
      />
    </div>
  )
}

function DidNotHappen({ form, row, onChange }: Pick<ChoicesProps, 'form' | 'row' | 'onChange'>) {
  const leftMs = row.quarantineLeftMs ?? 0
  return (
    <div class="grid">
      {leftMs > 0 && (
        <p class="note">
          The quarantine has {durationText(leftMs)} left: until then only the provider's explicit denial counts.
        </p>
      )}
      {!row.may.includes('settle.did_not_happen') && (
        <p class="note">Your answer becomes a proposal, which a person with the right to reject it decides.</p>
      )}
      <ChoiceField
        label="Evidence"
        value={form.evidenceKind}
        onValue={kind => onChange({ evidenceKind: kinds.find(([each]) => each === kind)?.[0] ?? 'other' })}
        options={kinds}
      />
      <TextField
        label="Which one"
        hint="number, link or name"
        value={form.evidence}
        onValue={evidence => onChange({ evidence })}
        isRequired
      />
    </div>
  )
}
