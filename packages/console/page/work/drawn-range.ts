/** Which rows of a long list are drawn: those near the window. To lay out a thousand takes longer than a person should wait for a scroll. */

/** Rows are drawn and dropped by so many: a few milliseconds at a time. */
export const blockRows = 10
/** Drawn beyond the window on both sides, so that neither a fast wheel nor the next key `j` meets a gap. */
const nearPx = 800

/** `first` and `last` are blocks. */
export interface DrawnRange {
  readonly first: number
  readonly last: number
  readonly abovePx: number
  readonly belowPx: number
}

/** `topPx`: how far the list begins above the window; negative if it begins below its upper edge. */
export function rangeOf(
  heights: readonly number[],
  { topPx, windowPx }: { topPx: number; windowPx: number },
): DrawnRange {
  let endPx = 0
  const ends = heights.map(height => (endPx += height))
  const lastBlock = Math.max(heights.length - 1, 0)
  const found = ends.findIndex(end => end > topPx - nearPx)
  const first = found === -1 ? lastBlock : found
  const after = ends.findIndex(end => end >= topPx + windowPx + nearPx)
  const last = after === -1 ? lastBlock : Math.max(after, first)
  return { first, last, abovePx: ends[first - 1] ?? 0, belowPx: endPx - (ends[last] ?? 0) }
}
