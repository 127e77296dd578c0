import { describe } from 'vitest'
import { itSettlesUnknowns } from './settle.cases.ts'

describe('an unknown payment in memory is settled', () => itSettlesUnknowns(() => 'memory:reconcile'))
