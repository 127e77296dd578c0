import type { FileReport, RunReport } from './messages.ts'

// A filter by test name skips all other tests; the list should not bury the result.
const SKIPPED_SHOWN_MAX = 40

export function summarise(run: RunReport): { lines: string[]; exitCode: number } {
  const passed = sum(run.files, file => file.passed)
  const skipped = sum(run.files, skippedIn)
  const failures = run.files.flatMap(file => file.failed.map(name => `${file.file} > ${name}`))
  if (run.unhandledErrors > 0) failures.push(`unhandled errors: ${run.unhandledErrors}, see above`)
  if (run.cutShort !== undefined) failures.push(`the run itself: ${run.cutShort}`)
  const nothing = passed + skipped + failures.length === 0
  // No result explains the exit code, so the exit code is a result.
  if (failures.length === 0 && !nothing && run.exitCode !== 0) failures.push(`vitest: exit code ${run.exitCode}`)

  const last = `${passed} passed, ${failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
  return {
    lines: [
      ...areaLines(run.files),
      ...skippedLines(run.files),
      ...failures.map(failure => `FAILED   ${failure}`),
      ...(passed === 0 ? ['No test passed, which counts as a failure: is the path right?'] : []),
      last,
    ],
    exitCode: failures.length === 0 && passed > 0 ? 0 : 1,
  }
}

/** The folder a reader would look for: a store or an adapter by itself, else the layer, else the package. */
export function areaOf(file: string): string {
  const parts = file.split('/').slice(0, -1)
  const [root, name, source] = parts
  if (root !== 'packages' || name === undefined) return parts.slice(0, 2).join('/') || '.'
  if (source !== 'src') return [name, ...parts.slice(2, 3)].join('/')
  return [name, ...parts.slice(3, 5)].join('/')
}

function areaLines(files: FileReport[]): string[] {
  const areas = [...new Set(files.map(file => areaOf(file.file)))].toSorted()
  const width = Math.max(0, ...areas.map(area => area.length))
  return areas.map(area => {
    const inArea = files.filter(file => areaOf(file.file) === area)
    const failed = sum(inArea, file => file.failed.length)
    const skipped = sum(inArea, skippedIn)
    const counts = [`${sum(inArea, file => file.passed)} passed`]
    if (failed > 0) counts.push(`${failed} FAILED`)
    if (skipped > 0) counts.push(`${skipped} skipped`)
    return `  ${area.padEnd(width)}  ${counts.join(', ')}`
  })
}

function skippedLines(files: FileReport[]): string[] {
  const lines = files.flatMap(({ file, skipped }) =>
    skipped.map(({ name, tests }) => `SKIPPED  ${file} > ${name} (${tests} ${tests === 1 ? 'test' : 'tests'})`),
  )
  if (lines.length <= SKIPPED_SHOWN_MAX) return lines
  return [...lines.slice(0, SKIPPED_SHOWN_MAX), `SKIPPED  and ${lines.length - SKIPPED_SHOWN_MAX} more`]
}

function skippedIn(file: FileReport): number {
  return sum(file.skipped, skipped => skipped.tests)
}

function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0)
}
