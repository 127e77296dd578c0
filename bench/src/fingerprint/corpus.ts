/** JSON texts that are bad for a reader of JSON: recipes that can be made at random, changed a little, and written out. */

/** From 0 up to 1, the same sequence for one seed. */
export type Chance = () => number

export function chanceOf(seed: number): Chance {
  let state = seed >>> 0
  return () => {
    // The generator of Numerical Recipes; its upper bits are good enough to choose by.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const leaves = [
  ...['1', '-0', '1.0', '1e5', '1E-7', '1e20', '123456789012345', '0.1000', '5e-324', '1.7976931348623157e308'],
  ...['0.30000000000000004', '3.0000000000000004e-1', '4503599627370497.5', `0.${'0'.repeat(40)}1`, '1e-300'],
  ...['""', '"a"', '"\\n"', '"\\u0041"', '"\\/"', '"\\ud83d\\ude00"', '"\u00e9"', '"\u{1f600}"', '"\\u0001\\u0002"'],
  ...[`"${'a'.repeat(60)}"`, `"${'\\n'.repeat(30)}"`, `"${'\\u00e9'.repeat(10)}"`, 'true', 'null', '[]', '{}'],
]
const nameParts = ['a', 'b', '1', '9', '\\n', '\\u0041', '\\u0001', '\\"', '\u00e9', '\uff01', '\u{1f600}', '\\/']
const orders = ['forwards', 'backwards', 'shuffled'] as const

export interface Recipe {
  readonly leaf: string
  /** Members of each object; 0: a list of leaves. */
  readonly members: number
  /** What every name begins with, so many times. */
  readonly part: string
  readonly repeats: number
  readonly digits: number
  readonly order: (typeof orders)[number]
  readonly depth: number
  readonly gap: string
}

export function randomRecipe(chance: Chance): Recipe {
  const below = (n: number) => Math.floor(chance() * n)
  return {
    leaf: pick(leaves, chance),
    members: pick([0, 0, 1, 2, 5, 8, 9, 16, 32, 33, 100, 1_000, 20_000], chance),
    part: pick(nameParts, chance),
    repeats: pick([0, 1, 3, 4, 10, 60, 200], chance),
    digits: below(7),
    order: pick(orders, chance),
    depth: pick([0, 0, 0, 1, 10, 200], chance),
    gap: pick(['', '', '', ' ', '\n\t  '], chance),
  }
}

/** With one or two properties of another one. */
export function changed(recipe: Recipe, chance: Chance): Recipe {
  const other = Object.entries(randomRecipe(chance))
  const taken = [pick(other, chance), pick(other, chance)]
  return { ...recipe, ...Object.fromEntries(taken) }
}

/** About `bytes` long. */
export function written(recipe: Recipe, bytes: number): string {
  const { members, depth, gap, leaf } = recipe
  const inside: string[] = []
  for (let length = 0; length < bytes;) {
    const one = members === 0 ? leaf : objectOf(recipe, bytes - length)
    inside.push(one)
    length += one.length + gap.length + 1
  }
  return `${'['.repeat(depth)}[${inside.join(`,${gap}`)}]${']'.repeat(depth)}`
}

function objectOf({ members, part, repeats, digits, order, gap, leaf }: Recipe, bytesMax: number): string {
  const prefix = part.repeat(repeats)
  const room = Math.max(1, Math.floor(bytesMax / (prefix.length + digits + leaf.length + 6)))
  const count = Math.min(members, room)
  const numbers = Array.from({ length: count }, (_, i) => i)
  if (order === 'backwards') numbers.reverse()
  if (order === 'shuffled') numbers.sort((a, b) => ((a * 7_919) % 20_011) - ((b * 7_919) % 20_011))
  return `{${numbers.map(n => `"${prefix}${String(n).padStart(digits, '0')}":${gap}${leaf}`).join(',')}}`
}

function pick<T>(from: readonly T[], chance: Chance): T {
  const found = from[Math.floor(chance() * from.length)]
  if (found === undefined) throw new Error('there is nothing to pick from')
  return found
}
