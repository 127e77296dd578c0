/**
 * Those who wait or work, in the order they came. Not a Set: one that many join and leave has its table replaced again and again, the
 * former tables hold their entries and the next table, and once one of them has grown old, all that follow wait for a full
 * collection. Whoever leaves a line holds nobody in it.
 */
export interface Link<Self> {
  before: Self | undefined
  next: Self | undefined
}

export interface Line<Place extends Link<Place>> {
  first: Place | undefined
  last: Place | undefined
  length: number
}

export function emptyLine<Place extends Link<Place>>(): Line<Place> {
  return { first: undefined, last: undefined, length: 0 }
}

export function stepIn<Place extends Link<Place>>(line: Line<Place>, place: Place): void {
  place.before = line.last
  if (line.last === undefined) line.first = place
  else line.last.next = place
  line.last = place
  line.length += 1
}

export function stepOut<Place extends Link<Place>>(line: Line<Place>, place: Place): void {
  const { before, next } = place
  if (before === undefined) line.first = next
  else before.next = next
  if (next === undefined) line.last = before
  else next.before = before
  line.length -= 1
  // Or all that ever stood in it would hold the one behind them, and each its request, until the next full collection.
  place.before = undefined
  place.next = undefined
}

/** Each may leave while it is looked at. */
export function* everyoneIn<Place extends Link<Place>>(line: Line<Place>): Iterable<Place> {
  for (let place = line.first; place !== undefined;) {
    const { next }: Link<Place> = place
    yield place
    place = next
  }
}
