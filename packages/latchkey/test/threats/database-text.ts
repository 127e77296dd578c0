/** All that Latchkey's tables hold, as one who copied the database would search it. */
import type pg from 'pg'

export async function searchTables(pool: pg.Pool, words: readonly string[]): Promise<string[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'latchkey'`,
  )
  const texts: string[] = []
  for (const { name } of tables) {
    const { rows } = await pool.query<{ text: string }>(`select t::text as text from ${name} t`)
    texts.push(...rows.map(({ text }) => text))
  }
  // Bytes are written in hexadecimal.
  const isThere = (word: string) =>
    texts.some(text => text.includes(word) || text.includes(Buffer.from(word).toString('hex')))
  return words.filter(isThere)
}
