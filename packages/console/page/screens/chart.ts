import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

const heightPx = 120

/** Requests that were reserved, by minute; as wide as its box, also after a zoom. */
export function drawChart(
  box: HTMLElement,
  minutes: readonly number[],
  counts: readonly number[],
): { destroy(): void } {
  const { color } = getComputedStyle(box)
  const accent = getComputedStyle(box).getPropertyValue('accent-color')
  const axis: uPlot.Axis = { stroke: color, grid: { show: false }, ticks: { stroke: color, width: 1 } }
  const clock: uPlot.Axis = { ...axis, values: (_, at) => at.map(s => new Date(s * 1_000).toISOString().slice(11, 16)) }
  const sizeOf = () => ({ width: Math.max(200, box.clientWidth), height: heightPx })
  const chart = new uPlot(
    {
      ...sizeOf(),
      legend: { show: false },
      cursor: { show: false },
      axes: [clock, axis],
      series: [{}, { stroke: accent, width: 2, points: { show: false } }],
    },
    [minutes.map(ms => ms / 1_000), [...counts]],
    box,
  )
  const observer = new ResizeObserver(() => chart.setSize(sizeOf()))
  observer.observe(box)
  return {
    destroy(): void {
      observer.disconnect()
      chart.destroy()
    },
  }
}
