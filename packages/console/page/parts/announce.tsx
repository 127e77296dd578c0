/** The one live region of a screen: what happened without a press of the reader, said politely. */
import { useEffect, useState } from 'preact/hooks'

let listener: ((text: string) => void) | undefined

export function announce(text: string): void {
  listener?.(text)
}

export function LiveRegion() {
  const [text, setText] = useState('')
  useEffect(() => {
    listener = setText
    return () => {
      listener = undefined
    }
  }, [])
  return (
    <p class="live" role="status" aria-live="polite">
      {text}
    </p>
  )
}
