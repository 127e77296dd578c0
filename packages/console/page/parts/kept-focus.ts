/** An act may take away what had the focus, such as the button of a row that is gone: a reader goes on from the heading, not from nowhere. */
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

export function useKeptFocus(box: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    let last: EventTarget | null = null
    const onFocus = ({ target }: FocusEvent) => {
      last = target
    }
    const observer = new MutationObserver(() => {
      const isLost = last instanceof Element && !last.isConnected && document.activeElement === document.body
      if (!isLost) return
      last = null
      element.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })
    })
    element.addEventListener('focusin', onFocus)
    observer.observe(element, { childList: true, subtree: true })
    return () => {
      element.removeEventListener('focusin', onFocus)
      observer.disconnect()
    }
  }, [])
}
