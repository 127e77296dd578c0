/**
 * The one member under which a Latchkey, its operations and its reconciler carry what adapters and workers need of them. Not part of the public
 * API: it changes without notice. Registered, so that two copies of the package in one process find each other's.
 */
export const engine: unique symbol = Symbol.for('latchkey.engine')
