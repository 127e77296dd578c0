/** A door in a handler: the test learns that it was reached, and opens it. */
export interface Door {
  readonly reached: Promise<void>
  pass(): Promise<void>
  open(): void
}

export function door(): Door {
  let arrive = () => {}
  let open = () => {}
  const reached = new Promise<void>(resolve => (arrive = resolve))
  const opened = new Promise<void>(resolve => (open = resolve))
  return {
    reached,
    pass() {
      arrive()
      return opened
    },
    open: () => open(),
  }
}
