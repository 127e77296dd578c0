/** What operators do, with rights, a second person and an audit. */
export type * from './admin.ts'
export type * from './results.ts'
export { type Person, type Right, rights, type Role, roles } from './rights.ts'
