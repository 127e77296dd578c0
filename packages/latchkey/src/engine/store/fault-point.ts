/** Named places where a test may kill the process. Nothing happens at them unless a function is put there first. */

const armed: unique symbol = Symbol.for('latchkey.faultPoint')

// Typed as what it is here: an object that may have this one member.
const place = globalThis as { readonly [armed]?: unknown }

/** `moment`, apart from the name so that nothing is joined where nobody listens. */
export function faultPoint(name: string, moment?: 'before' | 'after'): void {
  const arm = place[armed]
  if (typeof arm === 'function') arm(moment === undefined ? name : `${name}:${moment}`)
}
