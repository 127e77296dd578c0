/** A button that copies a text, for the window of a provider or a ticket. */
import { announce } from './announce.tsx'

export function Copy({ text, what }: { text: string; what: string }) {
  async function copy(): Promise<void> {
    announce((await isCopied(text)) ? `Copied: ${what}` : `The browser does not let this page copy: select the ${what}`)
  }
  return (
    <button type="button" class="quiet small" onClick={() => void copy()} aria-label={`Copy the ${what}`}>
      Copy
    </button>
  )
}

/** Browsers withhold their clipboard from pages without TLS: there, what is selected can still be copied. */
async function isCopied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return isSelectionCopied(text)
  }
}

function isSelectionCopied(text: string): boolean {
  const focused = document.activeElement
  const box = document.createElement('textarea')
  box.value = text
  box.className = 'hidden'
  document.body.append(box)
  box.select()
  const isDone = document.execCommand('copy')
  box.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isDone
}
