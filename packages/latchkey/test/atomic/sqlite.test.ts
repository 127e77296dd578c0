import { describe } from 'vitest'
import { itRunsOneOfMany } from './duplicates.cases.ts'
import { itEndsAtomically } from './endings.cases.ts'
import { sqliteShop } from './fixture.ts'

describe('an atomic operation on SQLite', () => itEndsAtomically(sqliteShop))

describe('many callers of one atomic operation on SQLite', () => itRunsOneOfMany(sqliteShop))
