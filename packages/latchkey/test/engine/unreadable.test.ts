import Database from 'libsql'
import { describe } from 'vitest'
import { sqliteHarness } from '../sqlite/harness.ts'
import { unreadableCases } from './unreadable.ts'

describe('rows that cannot be read, on SQLite', () => unreadableCases(() => sqliteHarness(path => new Database(path))))
