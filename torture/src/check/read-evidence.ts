/** The evidence of a run, from its directory. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Evidence, Facts, LedgerCharge } from './facts.ts'
import {
  type AppEvent,
  type ClientEvent,
  type NemesisEvent,
  readHistories,
  type ReceiptEvent,
  type WebhookEvent,
} from '../history.ts'

export const factsFile = 'facts.json'
export const ledgerFile = 'provider-ledger.jsonl'

export function readEvidence(directory: string): Evidence {
  const facts: Facts = JSON.parse(readFileSync(join(directory, factsFile), 'utf8'))
  return {
    facts,
    // The ledger's other lines are keys that were declined.
    charges: readHistories<LedgerCharge | { declined: string }>(directory, 'provider-ledger').filter(
      line => 'id' in line,
    ),
    clients: readHistories<ClientEvent>(directory, 'clients'),
    apps: readHistories<AppEvent>(directory, 'app-'),
    nemesis: readHistories<NemesisEvent>(directory, 'nemesis'),
    receipts: readHistories<ReceiptEvent>(directory, 'receipts'),
    webhooks: readHistories<WebhookEvent>(directory, 'webhooks'),
  }
}
