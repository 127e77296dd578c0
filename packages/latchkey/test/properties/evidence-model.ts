/** What the model remembers of evidence: its pieces by the generation of their row, messages beyond it, look-ups. */

export interface ModelPiece {
  readonly key: string
  readonly generation: number
  readonly source: 'ledger' | 'webhook'
  readonly ref: string
  readonly at: number
  readonly verdict: 'happened' | 'declined' | 'never-happened'
  /** What it is about: the whole answer, or the value of an effect. */
  readonly gives: 'outcome' | 'result' | undefined
  readonly value: string
  readonly effect: { readonly position: number; readonly epoch: number } | undefined
  /** The store's name for it. */
  readonly evidenceId: string
  applied: boolean
}

export interface ModelMessage {
  readonly at: number
  readonly generation: number
  signedAt: number
}

export interface ModelLookup {
  readonly key: string
  readonly fence: number
  readonly look: number
}

export interface EvidenceModel {
  /** Rises with every row that begins under a key. */
  readonly generations: Map<string, number>
  readonly messages: Map<string, ModelMessage>
  pieces: ModelPiece[]
  lookups: ModelLookup[]
  refs: number
}

export function noEvidence(): EvidenceModel {
  return { generations: new Map(), messages: new Map(), pieces: [], lookups: [], refs: 0 }
}

export function generationOf({ generations }: EvidenceModel, key: string): number {
  return generations.get(key) ?? 0
}

export function endLife(evidence: EvidenceModel, key: string): void {
  evidence.generations.set(key, generationOf(evidence, key) + 1)
}

/** The reaper ends a row's evidence with its answer. */
export function dropEvidence(evidence: EvidenceModel, key: string): void {
  evidence.pieces = evidence.pieces.filter(piece => piece.key !== key)
}
