/** Every section, in the order in which they run. */
import type { Section } from '../section.ts'
import { allocation } from './allocation.ts'
import { behaviour } from './behaviour.ts'
import { connections } from './connections.ts'
import { consolePage } from './console.ts'
import { consumers } from './consumers.ts'
import { fingerprint } from './fingerprint.ts'
import { flood } from './flood.ts'
import { growth } from './growth.ts'
import { httpSections } from './http-sections.ts'
import { operators } from './operators.ts'
import { outbox } from './outbox.ts'
import { redis } from './redis.ts'
import { publishers } from './publishers.ts'
import { rows } from './rows.ts'

export const sections: readonly Section[] = [
  behaviour,
  ...httpSections,
  redis,
  connections,
  flood,
  allocation,
  growth,
  rows,
  outbox,
  consumers,
  publishers,
  fingerprint,
  consolePage,
  operators,
]
