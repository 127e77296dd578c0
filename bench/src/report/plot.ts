/** The plots, as SVG written by hand: two charts are no reason for a library. */

export interface Line {
  readonly name: string
  readonly points: readonly { readonly x: number; readonly y: number }[]
}

export interface Range {
  readonly name: string
  readonly from: number
  readonly to: number
}

const width = 820
const left = 60
const right = 320
const top = 40
/** Readable on light and on dark paper. */
const ink = '#6b7280'
const faint = '#9ca3af55'
/** Colours that colour-blind readers can distinguish; Latchkey comes first after the bare server. */
const colours = ['#6b7280', '#2563eb', '#d97706', '#059669', '#dc2626', '#7c3aed', '#0891b2', '#be185d']

export interface LineChart {
  readonly title: string
  readonly xLabel: string
  readonly lines: readonly Line[]
}

/** Ratios over a number that doubles: x is logarithmic, y begins at 0. */
export function lineChart({ title, xLabel, lines }: LineChart): string {
  const height = 380
  const bottom = height - 45
  const xs = [...new Set(lines.flatMap(({ points }) => points.map(({ x }) => x)))].toSorted((a, b) => a - b)
  const yMax = Math.max(1, ...lines.flatMap(({ points }) => points.map(({ y }) => y))) * 1.05
  const xAt = scale([Math.log2(xs[0] ?? 1), Math.log2(xs.at(-1) ?? 2)], [left, width - right])
  const yAt = scale([0, yMax], [bottom, top])
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    y => `${rule(left, yAt(y), width - right, yAt(y))}${text(left - 8, yAt(y) + 4, y.toFixed(2), 'end')}`,
  )
  const ticks = xs.map(x => text(xAt(Math.log2(x)), bottom + 18, String(x), 'middle'))
  const drawn = lines.map(({ name, points }, index) => {
    const colour = colourOf(index)
    const path = points.map(({ x, y }) => `${xAt(Math.log2(x)).toFixed(1)},${yAt(y).toFixed(1)}`).join(' ')
    const dots = points.map(({ x, y }) => dot(xAt(Math.log2(x)), yAt(y), colour)).join('')
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}${legend(name, index)}`
  })
  return svg(height, title, [
    ...grid,
    ...ticks,
    text((left + width - right) / 2, height - 8, xLabel, 'middle'),
    ...drawn,
  ])
}

/** From one value to another on a logarithmic axis, a row for each name. */
export function rangeChart({
  title,
  xLabel,
  ranges,
}: {
  title: string
  xLabel: string
  ranges: readonly Range[]
}): string {
  const row = 30
  const height = top + ranges.length * row + 50
  const bottom = height - 45
  const low = Math.floor(Math.log10(Math.min(...ranges.map(({ from }) => from))))
  const high = Math.ceil(Math.log10(Math.max(...ranges.map(({ to }) => to))))
  const xAt = scale([low, high], [right, width - 30])
  const decades = Array.from({ length: high - low + 1 }, (_, n) => low + n)
  const grid = decades.map(
    decade =>
      `${rule(xAt(decade), top, xAt(decade), bottom)}${text(xAt(decade), bottom + 18, String(10 ** decade), 'middle')}`,
  )
  const drawn = ranges.map(({ name, from, to }, index) => {
    const y = top + row * (index + 0.5)
    const colour = colourOf(index)
    const [start, end] = [xAt(Math.log10(from)), xAt(Math.log10(to))]
    const bar = `<line x1="${start.toFixed(1)}" y1="${y}" x2="${end.toFixed(1)}" y2="${y}" stroke="${colour}" stroke-width="3"/>`
    const cap = `<line x1="${end.toFixed(1)}" y1="${y - 6}" x2="${end.toFixed(1)}" y2="${y + 6}" stroke="${colour}" stroke-width="3"/>`
    return `${bar}${cap}${dot(start, y, colour)}${text(right - 12, y + 4, name, 'end')}`
  })
  return svg(height, title, [...grid, text((right + width) / 2, height - 8, xLabel, 'middle'), ...drawn])
}

function scale([a, b]: readonly [number, number], [from, to]: readonly [number, number]): (value: number) => number {
  return value => from + ((value - a) / (b - a || 1)) * (to - from)
}

function colourOf(index: number): string {
  return colours[index % colours.length] ?? ink
}

function legend(name: string, index: number): string {
  const y = top + 8 + index * 22
  return `${dot(width - right + 24, y, colourOf(index))}${text(width - right + 36, y + 4, name, 'start')}`
}

function dot(x: number, y: number, colour: string): string {
  return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="4" fill="${colour}"/>`
}

function rule(x1: number, y1: number, x2: number, y2: number): string {
  return `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="${faint}"/>`
}

function text(x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end'): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${ink}">${escaped(words)}</text>`
}

function svg(height: number, title: string, parts: readonly string[]): string {
  const open = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`
  const heading = `<text x="${left}" y="22" font-size="14" font-weight="600" fill="${ink}">${escaped(title)}</text>`
  return `${[open, `<title>${escaped(title)}</title>`, heading, ...parts, '</svg>'].join('\n')}\n`
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
