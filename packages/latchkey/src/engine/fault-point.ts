/** Named places where a test may kill the process. Nothing happens at them unless a function is put there first. */

const armed = Symbol.for('latchkey.faultPoint')

export function faultPoint(name: string): void {
  const arm: unknown = Reflect.get(globalThis, armed)
  if (typeof arm === 'function') arm(name)
}
