/** The version of a row: it changes with the state, with the parked mark and with every act of a person. */
import type { RowAct, RowVersion } from '../../../ports/faculties/admin.ts'
import type { RawNumber } from '../record-row.ts'

/** More states than there are, and the mark. */
const statesMax = 16

export interface VersionColumns {
  readonly fence: RawNumber
  readonly state: RawNumber
  readonly acts: RawNumber | null
}

export function versionOf({ fence, state, acts }: VersionColumns, parked: boolean): RowVersion {
  return { fence: Number(fence), version: (Number(acts ?? 0) * statesMax + Number(state)) * 2 + (parked ? 1 : 0) }
}

export function isSameVersion(left: RowVersion, right: RowVersion): boolean {
  return left.fence === right.fence && left.version === right.version
}

/** Acts after which a decision on what was read before is one on something else. */
export function decides({ kind }: RowAct): boolean {
  return kind !== 'note' && kind !== 'reveal' && kind !== 'look-up'
}
