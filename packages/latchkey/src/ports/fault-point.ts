/** Named points where a test may kill the process. Nothing happens there unless a test has registered a function under the symbol. */

const armed: unique symbol = Symbol.for('latchkey.faultPoint')

// Only this one member of the global object is used here.
const place = globalThis as { readonly [armed]?: unknown }

/** `moment` is apart from the name so that no text is built unless a test is listening. */
export function faultPoint(name: string, moment?: 'before' | 'after'): void {
  const arm = place[armed]
  if (typeof arm === 'function') arm(moment === undefined ? name : `${name}:${moment}`)
}
