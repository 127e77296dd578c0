/** What the audit holds beside who acted and why: enough to find the row in logs once it is gone. */
import type { KeyRecord } from '../../ports/store.ts'

/** What stands there instead of what a person wrote, when the tenant was erased. */
export const erasedText = 'erased'

export function forgetDetail({ operation, fence }: Pick<KeyRecord, 'operation' | 'fence'>): string {
  return `${operation} fence ${fence}`
}

/** `lastErrorCode`: what the row was parked for. */
export function unparkDetail({ lastErrorCode, fence }: Pick<KeyRecord, 'lastErrorCode' | 'fence'>): string {
  return lastErrorCode === undefined ? `fence ${fence}` : `${lastErrorCode} fence ${fence}`
}
