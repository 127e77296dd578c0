/** Set-ups on one place, for cases that run on any store. */
import { afterEach, beforeAll } from 'vitest'
import { openPlace } from './database.ts'

interface Opened {
  close(): Promise<unknown>
}

/**
 * Called where tests are declared: the tables are made before the first of them, and what a test has opened is closed after it. Returns what
 * opens one.
 */
export function openerOn<Given extends unknown[], One extends Opened>(
  placeName: () => string,
  openOne: (place: string, ...given: Given) => Promise<One>,
): (...given: Given) => Promise<One> {
  const open: Opened[] = []
  beforeAll(async () => {
    const place = await openPlace(placeName())
    await place.migrate()
    await place.close()
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map(one => one.close()))
  })
  return async (...given) => {
    const one = await openOne(placeName(), ...given)
    open.push(one)
    return one
  }
}
