import { describe } from 'vitest'
import { rawSqlite } from './databases.ts'
import { killCases } from './kills.cases.ts'

describe('killed in the middle, on a SQLite file', () => killCases(rawSqlite))
