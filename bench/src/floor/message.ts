/** The messages of PostgreSQL's protocol that a batch needs: Bind and Execute of prepared statements, and one Sync. */

/** One array parameter: an item for each entry of the batch, in binary. */
export interface Column<Entry> {
  readonly type: keyof typeof typeIds
  of(entry: Entry): Buffer | string
}

/** The ids of the element types in pg_type. */
const typeIds = { uuid: 2950, bytea: 17 } as const
const bind = 0x42
const execute = 0x45
const sync = 0x53
const binary = 1

export interface MessageWriter {
  /** Adds one statement over all entries. Its result comes as text: `pg` decodes every field of a row as a string. */
  add<Entry>(statement: string, columns: readonly Column<Entry>[], entries: readonly Entry[]): void
  /** Ends the message. Its bytes are overwritten by the next one, so one message at a time may be under way. */
  finish(): Buffer
}

export function messageWriter(bytesMax: number): MessageWriter {
  const buffer = Buffer.allocUnsafe(bytesMax)
  let end = 0
  const int16 = (value: number) => void (end = buffer.writeInt16BE(value, end))
  const int32 = (value: number) => void (end = buffer.writeInt32BE(value, end))
  /** Goes back to write a length that is known only now. */
  const lengthAt = (at: number, length: number) => void buffer.writeInt32BE(length, at)
  const item = (value: Buffer | string) => {
    const at = end
    end += 4
    // Text that does not fit is cut short without an error, but then the Sync does not fit either and throws.
    end += typeof value === 'string' ? buffer.write(value, end) : value.copy(buffer, end)
    lengthAt(at, end - at - 4)
  }
  const array = <Entry>({ type, of }: Column<Entry>, entries: readonly Entry[]) => {
    const at = end
    end += 4
    // One dimension, no nulls, the type of the items, how many, the index of the first.
    for (const value of [1, 0, typeIds[type], entries.length, 1]) int32(value)
    for (const entry of entries) item(of(entry))
    lengthAt(at, end - at - 4)
  }
  return {
    add(statement, columns, entries) {
      buffer[end++] = bind
      const at = end
      end += 4
      buffer[end++] = 0
      end += buffer.write(statement, end)
      buffer[end++] = 0
      int16(1)
      int16(binary)
      int16(columns.length)
      for (const column of columns) array(column, entries)
      int16(0)
      lengthAt(at, end - at)
      buffer[end++] = execute
      int32(9)
      buffer[end++] = 0
      int32(0)
    },
    finish() {
      buffer[end++] = sync
      int32(4)
      const message = buffer.subarray(0, end)
      end = 0
      return message
    },
  }
}
