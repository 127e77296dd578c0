/** The fifth migration, to the letter what databases have: it never changes. `schema`: quoted. */

// Small outcomes live in the row of their key: one heap tuple, and no second index. The older table keeps the large ones, and
// those that were there before.
export function outcomeColumn(schema: string): string {
  return `alter table ${schema}.keys add column outcome bytea;
`
}
