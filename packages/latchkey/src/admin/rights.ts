/** Rights are acts, roles are sets of them. */
import { misconfigured } from '../ports/errors.ts'
import type { Scope } from '../engine/request.ts'

/** One for each act. `view` is every list, and every row without its bodies. */
export const rights = [
  'view',
  'take',
  'look_up',
  'note',
  'park',
  'resume',
  'settle.happened',
  'redrive',
  'bulk',
  'propose',
  'settle.did_not_happen',
  'forget',
  'skip',
  'reveal',
  'approve',
] as const

export type Right = (typeof rights)[number]

const viewer: readonly Right[] = ['view']
const operator: readonly Right[] = [
  ...viewer,
  'take',
  'look_up',
  'note',
  'park',
  'resume',
  'settle.happened',
  'redrive',
  'bulk',
  'propose',
]
const approver: readonly Right[] = [...operator, 'settle.did_not_happen', 'forget', 'skip', 'reveal', 'approve']

export const roles: {
  readonly viewer: readonly Right[]
  readonly operator: readonly Right[]
  readonly approver: readonly Right[]
} = { viewer, operator, approver }

export type Role = keyof typeof roles

/** Who acts, as the host application knows them. */
export interface Person {
  /**
   * Stands in the audit for good: a name that means one person, such as an e-mail address or a login. Names that differ only in case, in spaces at
   * their ends or in the form of their characters are one person where a second one is needed.
   */
  readonly name: string
  /** A role, or the rights themselves. */
  readonly role: Role | readonly Right[]
  /** Only rows of these scopes; every other row is not found. Default: all. */
  readonly limitScopes?: readonly Scope[] | undefined
}

export function rightsOf({ role }: Person): readonly Right[] {
  return typeof role === 'string' ? (roles[role] ?? []) : role
}

/** Whoever signs in as `Ann` and as `ann ` is one person: a second one has to differ by more than what people overlook. */
export function isSamePerson(name: string, other: string): boolean {
  return plainName(name) === plainName(other)
}

function plainName(name: string): string {
  return name.normalize('NFKC').trim().toLowerCase()
}

/** No store takes all of these as they are, and a name must be in the audit to the letter. */
const notInNames = /[\p{Cc}\p{Cs}]/u

export function checkPerson(person: Person): Person {
  const { name, role, limitScopes } = person ?? {}
  if (typeof name !== 'string' || name.trim() === '' || name.length > 200 || notInNames.test(name)) {
    throw misconfigured(
      `a person needs a name of 1 to 200 characters without control characters (got ${JSON.stringify(name)?.slice(0, 40)})`,
    )
  }
  const unknown =
    typeof role === 'string'
      ? Object.hasOwn(roles, role)
        ? undefined
        : role
      : role?.find(each => !rights.includes(each))
  if (role === undefined || unknown !== undefined) {
    throw misconfigured(
      `the role of ${name} must be viewer, operator, approver, or a list of rights (got ${JSON.stringify(unknown ?? role)}). The rights are ${rights.join(', ')}`,
    )
  }
  if (limitScopes !== undefined && !Array.isArray(limitScopes))
    throw misconfigured(`limitScopes of ${name} must be a list of scopes`)
  return person
}
