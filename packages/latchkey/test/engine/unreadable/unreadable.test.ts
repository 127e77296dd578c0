import Database from 'libsql'
import { describe } from 'vitest'
import { sqliteHarness } from '../../sqlite/fixture.ts'
import { unreadableCases } from './unreadable.cases.ts'

describe('rows that cannot be read, on SQLite', () => unreadableCases(() => sqliteHarness(path => new Database(path))))
