/** References, found by a keyed hash, with their text sealed beside it. */
import type { NewReference, References, StoredReference } from '../../ports/faculties/references.ts'
import { sealedTextMark } from '../../ports/sealed-marks.ts'
import type { Keyring } from './keyring.ts'
import { openText, type Place, sealText } from './seal.ts'

export function sealedReferences<Tx>(references: References<Tx>, ring: Keyring): References<Tx> {
  const sealAll = (id: string, given: readonly NewReference[]) =>
    Promise.all(given.map(({ index }) => sealReference(ring, id, index)))
  return {
    add: async (claim, given) => references.add(claim, await sealAll(claim.id, given)),
    addIn: async (tx, id, given) => references.addIn(tx, id, await sealAll(id, given)),
    async find(index, options) {
      const hashed = await references.find(hashedReference(ring, index), options)
      // What was stored before encryption was switched on stands there as it is.
      const plain = ring.plainValues === 'read' ? await references.find(index, options) : []
      return Promise.all([...hashed, ...plain].slice(0, options.limit).map(each => openReference(ring, each)))
    },
    of: async id => Promise.all((await references.of(id)).map(each => openReference(ring, each))),
  }
}

export async function sealReference(ring: Keyring, id: string, text: string): Promise<NewReference> {
  return { index: hashedReference(ring, text), sealed: await sealText(ring, placeOf(id), text) }
}

function hashedReference(ring: Keyring, text: string): string {
  return sealedTextMark + ring.indexOf('reference', text)
}

/** The text of a stored reference. Undefined: it does not open. */
export async function referenceText(
  ring: Keyring,
  { id, index, sealed }: Pick<StoredReference, 'id' | 'index' | 'sealed'>,
): Promise<string | undefined> {
  const opened = await openText(ring, placeOf(id), sealed ?? index)
  return opened.kind === 'opened' ? opened.text : undefined
}

/** One that does not open is shown as such, and the others stay. */
async function openReference(ring: Keyring, reference: StoredReference): Promise<StoredReference> {
  return { ...reference, index: (await referenceText(ring, reference)) ?? 'unreadable', sealed: undefined }
}

function placeOf(id: string): Place {
  return { identity: id, column: 'reference' }
}
