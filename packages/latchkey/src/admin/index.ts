/** What operators do, with rights, a second person and an audit. */
export type {
  Actor,
  Admin,
  AdminOptions,
  Approval,
  Asker,
  AuditFilter,
  BulkGiven,
  EvidenceGiven,
  FindWhat,
  ImportFile,
  OnRow,
  SettleGiven,
  StartBulkGiven,
  WorkFilter,
} from './admin.ts'
export type { Counted, Lanes, LaneState } from '../ports/faculties/admin.ts'
export type { AdminHost } from './context.ts'
export { createAdmin, type CreateAdminOptions } from './create.ts'
export {
  fastifyAdmin,
  type FastifyAdminReply,
  type FastifyAdminRequest,
  koaAdmin,
  type KoaAdminContext,
} from './http/doors.ts'
export type { ConsoleFiles } from './http/page.ts'
export { nodeAdmin, type NodeAdmin, type NodeAdminRequest, type NodeAdminResponse } from './http/node.ts'
export { type AdminHandler, adminRoutes, type AdminRoutesOptions } from './http/routes.ts'
export type * from './results.ts'
export { type Person, type Right, rights, type Role, roles } from './rights.ts'
