/** Labelled inputs: a label is always text, never a placeholder. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  readonly hint?: string | undefined
  readonly children: ComponentChildren
}

export function Field({ label, hint, children }: FieldProps) {
  return (
    <label class="field">
      <span>
        {label}
        {hint !== undefined && <small> {hint}</small>}
      </span>
      {children}
    </label>
  )
}

interface TextProps {
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  readonly hint?: string | undefined
  readonly isRequired?: boolean
  readonly rows?: number
  /** Takes the focus when it appears. */
  readonly hasFocus?: boolean
}

export function TextField({ label, value, onValue, hint, isRequired, rows, hasFocus = false }: TextProps) {
  const input = useRef<HTMLInputElement & HTMLTextAreaElement>(null)
  useEffect(() => {
    if (hasFocus) input.current?.focus()
  }, [hasFocus])
  const shared = {
    value,
    required: isRequired === true,
    autocomplete: 'off',
    spellcheck: false,
    ref: input,
    // For a dialog, which looks for it when it opens.
    autofocus: hasFocus,
    onInput: (event: Event) => onValue((event.currentTarget as HTMLInputElement | HTMLTextAreaElement).value),
  }
  return (
    <Field label={label} hint={hint}>
      {rows === undefined ? <input type="text" {...shared} /> : <textarea rows={rows} {...shared} />}
    </Field>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
  readonly options: readonly (readonly [value: string, text: string])[]
}

export function ChoiceField({ label, value, onValue, options }: ChoiceProps) {
  return (
    <Field label={label}>
      <select value={value} onChange={event => onValue(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  )
}
