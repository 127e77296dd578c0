import { describe } from 'vitest'
import { itSettlesDoubts } from './settle.cases.ts'
import { itRunsInPhases } from './steps.cases.ts'

describe('phased work in memory', () => {
  itRunsInPhases(() => 'memory:phased')
  describe('in doubt', () => itSettlesDoubts(() => 'memory:doubts'))
})
