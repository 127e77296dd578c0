/** What the form of the question holds, and what it sends. */
import type { AdminKey, SettleGiven } from 'latchkey/admin'

export interface AnswerForm {
  readonly answer: '' | 'happened' | 'did_not_happen' | 'still_unknown'
  readonly reference: string
  /** JSON text: the result of the effect, or the body that clients get. */
  readonly json: string
  readonly status: string
  readonly evidenceKind: 'ticket' | 'denial' | 'export' | 'other'
  readonly evidence: string
  readonly reason: string
  readonly confirm: string
}

export const emptyForm: AnswerForm = {
  answer: '',
  reference: '',
  json: '',
  status: '201',
  evidenceKind: 'ticket',
  evidence: '',
  reason: '',
  confirm: '',
}

export type SettleBody = Omit<SettleGiven, 'id' | 'version'>

/** A fault is a sentence for the person who fills in the form. */
export function settleBody(
  form: AnswerForm,
  openEffect: AdminKey['openEffect'],
): { readonly body: SettleBody } | { readonly fault: string } {
  const about = openEffect === undefined ? {} : { effect: openEffect.name }
  const { reason } = form
  switch (form.answer) {
    case '':
      return { fault: 'Choose one of the three answers.' }
    case 'still_unknown':
      return { body: { ...about, answer: 'still_unknown', reason } }
    case 'did_not_happen': {
      const evidence = { kind: form.evidenceKind, reference: form.evidence }
      return { body: { ...about, answer: 'did_not_happen', evidence, reason } }
    }
    case 'happened': {
      const json = parsed(form.json)
      if (json === undefined) return { fault: 'The result is not valid JSON: paste it as the provider gave it.' }
      if (openEffect !== undefined) {
        const evidence = { kind: 'reference', reference: form.reference, value: json.value } as const
        return { body: { ...about, answer: 'happened', evidence, reason } }
      }
      const evidence = { kind: 'reference', reference: form.reference } as const
      const response = { status: Number(form.status), json: json.value }
      return { body: { answer: 'happened', evidence, response, reason } }
    }
  }
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}
