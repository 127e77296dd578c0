/** The series of a metrics endpoint, by name and sorted labels. */
export function seriesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const sorted = (labels.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? []).toSorted()
      return [`${name}{${sorted.join(',')}}`, Number(value)] as const
    }),
  )
}

/** Of one metric, added up over its labels. */
export function total(series: ReadonlyMap<string, number>, name: string, label = ''): number {
  let sum = 0
  for (const [key, value] of series) if (key.startsWith(`${name}{`) && key.includes(label)) sum += value
  return sum
}
