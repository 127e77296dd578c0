import { describe } from 'vitest'
import { rawSqlite } from '../sealed/databases.ts'
import { erasedTrailCases } from './erase.cases.ts'
import { trailCases } from './trail.cases.ts'

describe('the trail in a SQLite file', () => trailCases(rawSqlite))
describe('the trail of an erased tenant in a SQLite file', () => erasedTrailCases(rawSqlite))
