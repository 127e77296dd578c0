/** What a schema has after all steps, as `objects.ts` reads it. A test makes it anew and compares; vitest's -u rewrites it. */
import expected from './expected.json' with { type: 'json' }
import type { SchemaObject } from './objects.ts'

// Written from values of this type.
export const expectedObjects: readonly SchemaObject[] = expected as readonly SchemaObject[]
