/** Single keys, which a reader can switch off (WCAG 2.1.4). */
import { useEffect, useState } from 'preact/hooks'
import { Dialog } from './dialog.tsx'
import { goTo, hrefOf } from './route.ts'

const stored = 'latchkey-shortcuts'

const shortcuts: readonly (readonly [key: string, what: string])[] = [
  ['/', 'Find a key'],
  ['j', 'Next row'],
  ['k', 'Row before'],
  ['o', 'Open the row'],
  ['x', 'Select the row'],
  ['l', 'Look up all rows of the open group'],
  ['r', 'Resume all rows of the open group'],
  ['t', 'Take the selected rows'],
  ['i', "Import a provider's export"],
  ['a', 'Approve the first proposal'],
  ['?', 'This list'],
]

export function Shortcuts() {
  const [isOpen, setIsOpen] = useState(false)
  const [isOn, setIsOn] = useState(() => localStorage.getItem(stored) !== 'off')
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isOn || isTyping(event) || document.querySelector('dialog[open]') !== null) return
      if (event.key === '?') setIsOpen(true)
      else if (!press(event.key)) return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [isOn])
  function setOn(next: boolean): void {
    localStorage.setItem(stored, next ? 'on' : 'off')
    setIsOn(next)
  }
  return (
    <>
      <button type="button" class="quiet" onClick={() => setIsOpen(true)}>
        Keyboard
      </button>
      {isOpen && (
        <Dialog title="Keyboard" onClose={() => setIsOpen(false)}>
          <dl class="keys">
            {shortcuts.map(([key, what]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
          <label class="check">
            <input type="checkbox" checked={isOn} onChange={event => setOn(event.currentTarget.checked)} /> Single keys
            are shortcuts
          </label>
        </Dialog>
      )}
    </>
  )
}

function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return true
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit'].includes(target.type)
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
}

/** Whether the key meant something. */
function press(key: string): boolean {
  switch (key) {
    case '/':
      goTo(hrefOf('find'))
      return true
    case 'j':
      return moveFocus(1)
    case 'k':
      return moveFocus(-1)
    case 'o':
      return inRow('a[data-row]')
    case 'x':
      return inRow('input[type=checkbox]')
    default:
      return pressButton(key)
  }
}

/** The first button on the screen that has this key. */
function pressButton(key: string): boolean {
  if (!/^[a-z]$/.test(key)) return false
  const found = document.querySelector<HTMLElement>(`main button[data-key="${key}"]:enabled`)
  found?.click()
  return found !== null
}

function moveFocus(by: 1 | -1): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('a[data-row]')].filter(link => link.offsetParent !== null)
  const row = document.activeElement?.closest('tr')
  const at = links.findIndex(link => link.closest('tr') === row)
  const next = at === -1 ? links[0] : links[at + by]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
  return next !== undefined
}

function inRow(selector: string): boolean {
  const found = document.activeElement?.closest('tr')?.querySelector<HTMLElement>(selector)
  found?.click()
  return found !== null && found !== undefined
}
