/** What the fleet did in the last hour. The chart is loaded after the figures, which say the same in words. */
import { useEffect, useRef } from 'preact/hooks'
import { byMinute, percentText, type RateRows, sumOf } from '../api/rate-sums.ts'

export function Rates({ rates }: { rates: RateRows }) {
  const box = useRef<HTMLDivElement>(null)
  const { minutes, counts } = byMinute(rates, 'reserve.created')
  useEffect(() => {
    const element = box.current
    if (element === null || minutes.length < 2) return undefined
    let chart: { destroy(): void } | undefined
    let isGone = false
    void import('./chart.ts').then(({ drawChart }) => {
      if (!isGone) chart = drawChart(element, minutes, counts)
    })
    return () => {
      isGone = true
      chart?.destroy()
    }
  }, [JSON.stringify([minutes, counts])])
  const reserved = sumOf(rates, 'reserve.created')
  const replayed = sumOf(rates, 'reserve.replay')
  const seen = reserved + replayed
  return (
    <section aria-labelledby="rates">
      <h2 id="rates">The last hour</h2>
      <ul class="figures">
        <li>{reserved} reserved</li>
        <li>replayed {percentText(replayed, seen)}</li>
        <li>mismatch {percentText(sumOf(rates, 'reserve.key_misuse'), seen)}</li>
        <li>store errors {sumOf(rates, 'store.error')}</li>
      </ul>
      <div ref={box} class="chart" aria-hidden="true" />
    </section>
  )
}
