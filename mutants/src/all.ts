import { adminMutants } from './admin.ts'
import { answerMutants } from './answers.ts'
import { auditMutants } from './audit.ts'
import { clientTextMutants } from './client-text.ts'
import { consoleMutants } from './console.ts'
import { consumerMutants } from './consumers.ts'
import { engineMutants } from './engine.ts'
import { httpMutants } from './http.ts'
import { inboxMutants } from './inbox.ts'
import { limitMutants } from './limits.ts'
import { loadMutants, unreadableMutants } from './load.ts'
import { memoryMutants } from './memory.ts'
import type { Mutant } from './mutant.ts'
import { outageMutants } from './outage.ts'
import { postgresBatchMutants } from './postgres-batches.ts'
import { postgresConnectionMutants } from './postgres-connections.ts'
import { postgresEvidenceMutants } from './postgres-evidence.ts'
import { postgresMutants } from './postgres.ts'
import { publisherMutants } from './publishers.ts'
import { reconcileMutants } from './reconcile.ts'
import { redisMutants } from './redis.ts'
import { sealedMutants } from './sealed.ts'
import { sqliteEvidenceMutants } from './sqlite-evidence.ts'
import { sqliteMutants } from './sqlite.ts'
import { streamMutants } from './streams.ts'
import { telemetryMutants } from './telemetry.ts'
import { tieredMutants } from './tiered.ts'
import { transactionMutants } from './transactions.ts'

export const mutants: readonly Mutant[] = [
  ...postgresMutants,
  ...postgresBatchMutants,
  ...postgresConnectionMutants,
  ...postgresEvidenceMutants,
  ...sqliteMutants,
  ...sqliteEvidenceMutants,
  ...redisMutants,
  ...tieredMutants,
  ...publisherMutants,
  ...consumerMutants,
  ...memoryMutants,
  ...engineMutants,
  ...answerMutants,
  ...outageMutants,
  ...loadMutants,
  ...unreadableMutants,
  ...clientTextMutants,
  ...reconcileMutants,
  ...httpMutants,
  ...streamMutants,
  ...transactionMutants,
  ...telemetryMutants,
  ...sealedMutants,
  ...auditMutants,
  ...adminMutants,
  ...consoleMutants,
  ...limitMutants,
  ...inboxMutants,
]
