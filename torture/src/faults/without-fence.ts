/** The bug that a run must find: nobody compares who owns a row. With `--without-fence` a run ends with FAILED, or it is too weak to notice. */
import type { Change } from '../../../test/programs/bundle.ts'

const compared = ' or fence ~= tonumber(ownFence) or claim ~= ownClaim'

export const withoutFence: readonly Change[] = [
  { file: 'stores/redis/keys/heartbeat.ts', find: compared, replace: '' },
  { file: 'stores/redis/steps/steps.ts', find: compared, replace: '' },
  { file: 'stores/redis/keys/complete.ts', find: ' or fence ~= ownFence or claim ~= ownClaim', replace: '' },
  { file: 'stores/redis/keys/owner.ts', find: 'fence == tonumber(ownFence) and claim == ownClaim', replace: 'true' },
]
