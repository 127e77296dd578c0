/**
 * A list whose nodes are removed from anywhere, in the order in which they were appended. Not a Set: one with many additions and removals has its
 * table replaced again and again, each former table holds its entries and the next table, and once one of them has grown old, all that follow
 * wait for a full collection.
 */
export interface ListNode<Self> {
  before: Self | undefined
  next: Self | undefined
}

export interface LinkedList<Node extends ListNode<Node>> {
  first: Node | undefined
  last: Node | undefined
  length: number
}

export function emptyList<Node extends ListNode<Node>>(): LinkedList<Node> {
  return { first: undefined, last: undefined, length: 0 }
}

export function append<Node extends ListNode<Node>>(list: LinkedList<Node>, node: Node): void {
  node.before = list.last
  if (list.last === undefined) list.first = node
  else list.last.next = node
  list.last = node
  list.length += 1
}

export function remove<Node extends ListNode<Node>>(list: LinkedList<Node>, node: Node): void {
  const { before, next } = node
  if (before === undefined) list.first = next
  else before.next = next
  if (next === undefined) list.last = before
  else next.before = before
  list.length -= 1
  // A removed node keeps no reference to its neighbours: each would hold the next one, and its request, until a full collection.
  node.before = undefined
  node.next = undefined
}

/** A node may be removed while the loop is at it. */
export function* values<Node extends ListNode<Node>>(list: LinkedList<Node>): Iterable<Node> {
  for (let node = list.first; node !== undefined;) {
    const { next }: ListNode<Node> = node
    yield node
    node = next
  }
}
