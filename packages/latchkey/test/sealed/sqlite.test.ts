import { describe } from 'vitest'
import { rawSqlite } from './databases.ts'
import { eraseCases } from './erase.cases.ts'
import { sealedCases } from './sealed.cases.ts'

describe('an encrypted SQLite file', () => sealedCases(rawSqlite))
describe('erasing a tenant from a SQLite file', () => eraseCases(rawSqlite))
