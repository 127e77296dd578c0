/** What the model remembers of what was said: pieces of evidence by the life of their row, messages beyond it, look-ups. */

export interface ModelPiece {
  readonly key: string
  readonly life: number
  readonly source: 'ledger' | 'webhook'
  readonly ref: string
  readonly at: number
  readonly verdict: 'happened' | 'declined' | 'never-happened'
  /** Of what was said: the whole answer, or the value of an effect. */
  readonly tells: 'outcome' | 'result' | undefined
  readonly value: string
  readonly effect: { readonly position: number; readonly epoch: number } | undefined
  /** The store's name for it. */
  readonly evidenceId: string
  applied: boolean
}

export interface ModelMessage {
  readonly at: number
  readonly life: number
  signedAt: number
}

export interface ModelLookup {
  readonly key: string
  readonly fence: number
  readonly look: number
}

export interface EvidenceModel {
  /** Rises with every row that begins under a key. */
  readonly lives: Map<string, number>
  readonly messages: Map<string, ModelMessage>
  pieces: ModelPiece[]
  lookups: ModelLookup[]
  refs: number
}

export function noEvidence(): EvidenceModel {
  return { lives: new Map(), messages: new Map(), pieces: [], lookups: [], refs: 0 }
}

export function lifeOf({ lives }: EvidenceModel, key: string): number {
  return lives.get(key) ?? 0
}

export function endLife(evidence: EvidenceModel, key: string): void {
  evidence.lives.set(key, lifeOf(evidence, key) + 1)
}

/** The reaper ends a row's evidence with its answer. */
export function dropEvidence(evidence: EvidenceModel, key: string): void {
  evidence.pieces = evidence.pieces.filter(piece => piece.key !== key)
}
