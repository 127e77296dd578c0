import { engineMutants } from './engine.ts'
import type { Mutant } from './mutant.ts'
import { postgresMutants } from './postgres.ts'
import { sqliteMutants } from './sqlite.ts'

export const mutants: readonly Mutant[] = [...postgresMutants, ...sqliteMutants, ...engineMutants]
