/** The fifteenth migration: names under which rows are found. To the letter what databases have: it never changes. `schema`: quoted. */

/** `ref` is what is searched for: the text, or its keyed hash, with the text sealed beside it. */
export function referenceTable(schema: string): string {
  return `create table ${schema}.key_references (
  reference_id bigint generated always as identity primary key,
  key_id uuid not null,
  ref text collate "C" not null,
  sealed text collate "C",
  at timestamptz not null
);
create unique index key_references_of_key on ${schema}.key_references (key_id, ref);
create index key_references_by_ref on ${schema}.key_references (ref, reference_id);

`
}
