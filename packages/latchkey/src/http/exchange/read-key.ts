/** Keys that a function of the operation reads, such as those in the body. */
import { hasLoneSurrogate } from '../../engine/fingerprint/json/scalar.ts'
import type { OperationEngine } from '../../engine/operation.ts'
import type { KeySource } from '../../engine/options.ts'
import { checkKey, invalid, type KeyFieldResult } from '../../wire/key-rules.ts'

type ReadKey<C> = Extract<KeySource<C>, (context: C) => unknown>

/** Never rejects. A request whose key cannot be read is refused: without its key it could run twice. */
export async function readKeyWith<C>(
  read: ReadKey<C>,
  { name, settings, shared }: OperationEngine<C, never>,
  context: C,
): Promise<KeyFieldResult> {
  try {
    const key: unknown = await read(context)
    if (key === undefined) return { kind: 'missing' }
    if (typeof key !== 'string') return invalid('wrong-type', `The key is ${kindOf(key)}; send a string.`)
    // It has no bytes of its own: two keys that hold one could become one.
    if (hasLoneSurrogate(key)) return invalid('malformed', 'The key holds a lone surrogate, which is not a character.')
    return checkKey(key, settings.keyFormat)
  } catch (error) {
    shared.telemetry.report('the key could not be read, so the request was refused', { operation: name, error })
    return invalid('malformed', 'The server could not read the key in this request. It was not executed.')
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
