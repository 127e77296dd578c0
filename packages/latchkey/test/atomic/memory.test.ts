import { describe } from 'vitest'
import { itRunsOneOfMany } from './duplicates.cases.ts'
import { itEndsAtomically } from './endings.cases.ts'
import { memoryShop } from './fixture.ts'

describe('an atomic operation in memory', () => itEndsAtomically(memoryShop))

describe('many callers of one atomic operation in memory', () => itRunsOneOfMany(memoryShop))
