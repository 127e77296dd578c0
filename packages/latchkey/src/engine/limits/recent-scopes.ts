/** Something for each of the scopes that asked last. */

/**
 * Scopes that are remembered. Beyond it the one that asked longest ago is forgotten, and begins anew when it comes back: by then ten thousand others
 * have asked.
 */
const scopesMax = 10_000

export class RecentScopes<T> {
  private readonly begin: (scope: string) => T
  /** In the order in which they last asked. */
  private readonly known = new Map<string, T>()

  constructor(begin: (scope: string) => T) {
    this.begin = begin
  }

  of(scope: string): T {
    const { known } = this
    const found = known.get(scope) ?? this.begin(scope)
    // Deleted first, so that it becomes the last.
    known.delete(scope)
    known.set(scope, found)
    if (known.size > scopesMax) this.forgetOldest()
    return found
  }

  private forgetOldest(): void {
    for (const scope of this.known.keys()) {
      this.known.delete(scope)
      return
    }
  }
}
