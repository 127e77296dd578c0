/**
 * Before each file. Files share a process, and the Node server of Hono puts classes of its own in the place of these two for good: the
 * next file begins with the platform's.
 */
const kept: unique symbol = Symbol.for('latchkey.test.platformClasses')
const place = globalThis as { [kept]?: Pick<typeof globalThis, 'Request' | 'Response'> }

place[kept] ??= { Request, Response }
for (const [name, value] of Object.entries(place[kept])) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
}
