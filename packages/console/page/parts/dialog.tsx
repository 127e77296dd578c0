/** The browser's own dialog: it keeps the focus inside, closes with Escape, and gives the focus back. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { useHold } from '../api/poll.ts'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useHold(true)
  useEffect(() => {
    const opener = document.activeElement
    element.current?.showModal()
    return () => {
      element.current?.close()
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
    }
  }, [])
  const onCancel = (event: Event) => {
    event.preventDefault()
    onClose()
  }
  return (
    <dialog ref={element} aria-labelledby={titleId} onCancel={onCancel}>
      <header>
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      {children}
    </dialog>
  )
}
