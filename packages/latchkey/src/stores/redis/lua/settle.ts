/** An unknown row ends: by evidence that is kept, or by a person's word. For scripts with the transitions, the steps and `retentionMs`. */
import { stateCodes } from '../../shared/codes.ts'

/** The caller has seen that the row is unknown and that the verdict is of the kind it needs. Returns the state that the row is in then. */
export const settleLua: string = `
-- An outcome that was not packed for this grant has 0 in the place of the fence, its fourth byte: see packed-outcome.ts.
local function withFence(packed)
  local bytes, left = {}, fence
  while left > 127 do
    bytes[#bytes + 1] = string.char(left % 128 + 128)
    left = math.floor(left / 128)
  end
  bytes[#bytes + 1] = string.char(left)
  return packed:sub(1, 3) .. table.concat(bytes) .. packed:sub(5)
end

local function settleUnknown(verdict, answer, value, position)
  if answer then
    more.by = 'evidence'
    toCompleted(withFence(answer), retentionMs)
    return ${stateCodes.completed}
  end
  local to = untried()
  moveExpiry(math.max(expires, now + retentionMs))
  toWaiting(to, now)
  if position and verdict == 'never-happened' then allowAgain(position, 1) end
  if position and verdict ~= 'never-happened' then finishEffect(position, value) end
  return to
end`
