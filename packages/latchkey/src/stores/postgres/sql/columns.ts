/**
 * The parameters of a statement for many rows: one array a column, in PostgreSQL's binary format. Nothing has to be quoted, so no
 * value can ever be read as two, and bytes need not become hexadecimal text and back.
 */
import { BinaryWriter, nullLength } from './binary-writer.ts'
import { uuidBytes } from './uuid.ts'

/** What a batch has of each item. */
export interface Column<Item> {
  /** The number of the type in `pg_type`. */
  readonly type: number
  /** Writes one value behind its length. */
  write(writer: BinaryWriter, item: Item): void
}

export function uuids<Item>(of: (item: Item) => string): Column<Item> {
  return { type: 2950, write: (writer, item) => writer.uuid(of(item)) }
}

export function byteas<Item>(of: (item: Item) => Uint8Array): Column<Item> {
  return { type: 17, write: (writer, item) => writer.bytes(of(item)) }
}

export function smallints<Item>(of: (item: Item) => number): Column<Item> {
  return { type: 21, write: (writer, item) => writer.smallint(of(item)) }
}

export function bigints<Item>(of: (item: Item) => bigint): Column<Item> {
  return { type: 20, write: (writer, item) => writer.bigint(of(item)) }
}

export function float8s<Item>(of: (item: Item) => number): Column<Item> {
  return { type: 701, write: (writer, item) => writer.float8(of(item)) }
}

export function texts<Item>(of: (item: Item) => string | null): Column<Item> {
  return { type: 25, write: (writer, item) => writer.text(of(item)) }
}

/** The array of one column, without its length. */
export function writeArray<Item>(writer: BinaryWriter, { type, write }: Column<Item>, items: readonly Item[]): void {
  // One dimension; whether there are nulls; the type, how many, the number of the first.
  writer.int32(1)
  const nullsAt = writer.later()
  writer.int32(type)
  writer.int32(items.length)
  writer.int32(1)
  writer.hasNulls = false
  for (const item of items) write(writer, item)
  if (writer.hasNulls) writer.int32At(nullsAt, 1)
}

/** One array as a parameter of its own, for a driver that sends it. */
export function arrayParameter<Item>(column: Column<Item>, items: readonly Item[]): Buffer {
  const writer = new BinaryWriter(arrayHeadBytes + items.length * (4 + uuidBytes))
  writeArray(writer, column, items)
  return writer.written()
}

/** The value of one item, in the same way. */
export function parameter<Item>(column: Column<Item>, item: Item): Buffer | null {
  const writer = new BinaryWriter(valueBytes)
  column.write(writer, item)
  const value = writer.written()
  return value.readInt32BE() === nullLength ? null : value.subarray(4)
}

const arrayHeadBytes = 20
/** More than most values need. */
const valueBytes = 64
