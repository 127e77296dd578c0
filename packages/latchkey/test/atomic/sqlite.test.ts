import { describe } from 'vitest'
import { itRunsOneOfMany } from './duplicates.ts'
import { itEndsAtomically } from './endings.ts'
import { sqliteShop } from './shop.ts'

describe('an atomic operation on SQLite', () => itEndsAtomically(sqliteShop))

describe('many callers of one atomic operation on SQLite', () => itRunsOneOfMany(sqliteShop))
