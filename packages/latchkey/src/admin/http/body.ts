/** What a body may have: its fields, and what each of them is, all the way down. What does not fit is refused before anything is asked. */

export type Body = Readonly<Record<string, unknown>>

/** `scope`: a text, or a list of texts. `any`: JSON of the application's own. Fields: an object of them. */
export type FieldKind = 'text' | 'texts' | 'scope' | 'number' | 'any' | Fields

/** Whether a field must be there is for the service to say. */
export interface Fields {
  readonly [name: string]: FieldKind
}

/** Why a body is not what the route takes. Undefined: it is. */
export function bodyFault(body: unknown, fields: Fields): string | undefined {
  return isObject(body) ? objectFault(body, { name: 'the body', fields }) : 'the body must be a JSON object'
}

interface Named {
  readonly name: string
  readonly fields: Fields
}

function objectFault(given: Body, { name, fields }: Named): string | undefined {
  for (const [field, value] of Object.entries(given)) {
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined
    if (kind === undefined)
      return `${name} has an unknown field ${field}; it may have ${Object.keys(fields).join(', ') || 'none'}`
    const fault = fieldFault(value, field, kind)
    if (fault !== undefined) return fault
  }
  return undefined
}

function fieldFault(value: unknown, field: string, kind: FieldKind): string | undefined {
  if (typeof kind === 'object')
    return isObject(value) ? objectFault(value, { name: field, fields: kind }) : `${field} must be an object`
  return fits[kind](value) ? undefined : `${field} must be ${wanted[kind]}`
}

function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const isText = (value: unknown): boolean => typeof value === 'string'
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)

const fits: Readonly<Record<Exclude<FieldKind, Fields>, (value: unknown) => boolean>> = {
  text: isText,
  texts: areTexts,
  scope: value => isText(value) || areTexts(value),
  number: value => typeof value === 'number' && Number.isFinite(value) && value >= 0,
  any: () => true,
}

const wanted: Readonly<Record<Exclude<FieldKind, Fields>, string>> = {
  text: 'a text',
  texts: 'a list of texts',
  scope: 'a text or a list of texts',
  number: 'a number from 0 on',
  any: 'JSON',
}
