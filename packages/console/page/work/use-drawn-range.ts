/** The part of a list that is drawn, as the window scrolls. */
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { blockRows, type DrawnRange, rangeOf } from './drawn-range.ts'

/** Until a block was drawn once. */
const rowPx = 40

export function useDrawnRange(count: number, body: RefObject<HTMLTableSectionElement | null>): DrawnRange {
  const measured = useRef(new Map<number, number>())
  const heightsOf = () =>
    Array.from({ length: Math.ceil(count / blockRows) }, (_, at) => {
      const rows = Math.min(blockRows, count - at * blockRows)
      return measured.current.get(at) ?? rows * rowPx
    })
  const [range, setRange] = useState(() => rangeOf(heightsOf(), { topPx: 0, windowPx: innerHeight }))
  useEffect(() => {
    const look = () => {
      if (body.current === null) return
      measure(body.current, range.first, measured.current)
      const next = rangeOf(heightsOf(), { topPx: -body.current.getBoundingClientRect().top, windowPx: innerHeight })
      setRange(before => (isSame(before, next) ? before : next))
    }
    look()
    addEventListener('scroll', look, { passive: true })
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', look)
      removeEventListener('resize', look)
    }
  })
  return range
}

/** Texts wrap, so that no two blocks need be equally high. */
function measure(body: HTMLTableSectionElement, first: number, measured: Map<number, number>): void {
  const rows = [...body.rows].filter(row => row.ariaHidden !== 'true')
  for (let at = 0; at < rows.length; at += blockRows) {
    const block = rows.slice(at, at + blockRows)
    const heightPx = block.reduce((sum, row) => sum + row.getBoundingClientRect().height, 0)
    measured.set(first + at / blockRows, heightPx)
  }
}

function isSame(left: DrawnRange, right: DrawnRange): boolean {
  return (
    left.first === right.first &&
    left.last === right.last &&
    left.abovePx === right.abovePx &&
    left.belowPx === right.belowPx
  )
}
