/**
 * A second role that may create in `public`, and does: a better-fitting overload of everything our statements could mean. The
 * server prefers an exact match in any schema of the path to a polymorphic or converted one in pg_catalog.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'

export interface Overloads {
  /** Of the role's own functions, as the server told of their calls on this pool. */
  readonly called: ReadonlySet<string>
  /** Functions that were named without their schema on this pool. */
  readonly unqualified: ReadonlySet<string>
  drop(): Promise<void>
}

/** Every type that a statement of the store puts into a function or an operator. */
const types = `'{uuid,text,bytea,int2,int4,int8,float8,numeric,bool,timestamptz,interval,jsonb,xid8,uuid[],text[],int8[],bytea[]}'`
const operators = `'{=,<>,<,>,<=,>=,+,-,*,/,||}'`

/** Written as functions are, and yet the grammar's own, which no schema can change: with several arguments, `unnest` is too. */
const ownSyntax = /\bextract\(epoch from|\bunnest\([^(),]+,/g
const qualified = /[\w"]\.[a-z_][a-z0-9_]*\(/g

/** Before anything of the pool's is sent. Watches every connection that the pool makes from now on. */
export async function plantOverloads(url: string, pool: pg.Pool): Promise<Overloads> {
  const role = `enemy_${randomBytes(8).toString('hex')}`
  const owner = new pg.Client({ connectionString: url })
  await owner.connect()
  await owner.query(`create role ${role} login; grant usage, create on schema public to ${role}`)
  const as = new URL(url)
  as.username = role
  const enemy = new pg.Client({ connectionString: as.href })
  await enemy.connect()
  const names = await functionNames(enemy)
  await enemy.query(plantText(names))
  await enemy.end()
  const [called, unqualified] = [new Set<string>(), new Set<string>()]
  pool.on('connect', client => {
    client.on('notice', ({ message = '' }) => void (message.startsWith('enemy: ') && called.add(message)))
    watchTexts(client, text => namedAlone(text, names).forEach(name => unqualified.add(name)))
  })
  return {
    called,
    unqualified,
    async drop() {
      await owner.query(`drop owned by ${role} cascade; drop role ${role}`)
      await owner.end()
    },
  }
}

/** What stands before a parenthesis anywhere in the store's source, and is a function of the server's. */
async function functionNames(client: pg.Client): Promise<readonly string[]> {
  const folder = new URL('../../src/stores/postgres/', import.meta.url)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const sources = files.filter(name => name.endsWith('.ts') && !name.includes('.test.'))
  const found = sources.flatMap(name => wordsBeforeParenthesis(readFileSync(new URL(name, folder), 'utf8')))
  const { rows } = await client.query<{ name: string }>(
    `select distinct proname::text as name from pg_catalog.pg_proc
     where pronamespace = 'pg_catalog'::regnamespace and proname = any($1::text[])`,
    [found],
  )
  return rows.map(row => row.name)
}

function wordsBeforeParenthesis(text: string): string[] {
  return [...text.matchAll(/([a-z_][a-z0-9_]*)\(/g)].map(([, word = '']) => word)
}

/** One or two arguments of every type; more are watched for by name. Those that pg_catalog has itself always win there. */
function plantText(names: readonly string[]): string {
  return `do $$
    declare
      name text; a text; b text; op text; result text;
      types text[] := ${types};
      seconds text[] := '{text,int4,int8,float8,numeric,timestamptz}';
      body text := 'language plpgsql as ''begin raise warning ''''enemy: %s''''; return null; end''';
    begin
      foreach name in array array['${names.join(`', '`)}'] loop
        result := coalesce((select p.prorettype::regtype::text from pg_proc p join pg_type t on t.oid = p.prorettype
          where p.proname = name and t.typtype <> 'p' limit 1), 'text');
        foreach a in array types loop
          execute format('create function public.%I(%s) returns %s ' || body, name, a, result, name);
          continue when not exists (select from pg_proc where proname = name and (pronargs = 2 or provariadic <> 0));
          foreach b in array seconds loop
            execute format('create function public.%I(%s, %s) returns %s ' || body, name, a, b, result, name);
          end loop;
        end loop;
      end loop;
      foreach a in array types loop
        foreach b in array types loop
          execute format('create function public.compared(%s, %s) returns bool ' || body, a, b, 'comparison of ' || a || ' with ' || b);
          execute format('create function public.computed(%s, %s) returns %s ' || body, a, b, a, 'arithmetic of ' || a || ' with ' || b);
          foreach op in array ${operators}::text[] loop
            continue when exists (select from pg_operator o where o.oprname = op and o.oprleft = a::regtype and o.oprright = b::regtype);
            execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.%s)', op, a, b,
              case when op in ('+', '-', '*', '/', '||') then 'computed' else 'compared' end);
          end loop;
        end loop;
      end loop;
    end $$`
}

/** What is sent stays as it is. */
function watchTexts(client: pg.ClientBase, watch: (text: string) => void): void {
  const query: (...args: unknown[]) => unknown = client.query.bind(client)
  Reflect.set(client, 'query', (...args: unknown[]) => {
    const [first] = args
    if (typeof first === 'string') watch(first)
    else if (typeof first === 'object' && first !== null && 'text' in first) watch(String(first.text))
    return query(...args)
  })
}

/** Of the statements that are sent for a call; what a migration makes is made under a path of its own. */
function namedAlone(text: string, names: readonly string[]): readonly string[] {
  if (!/^\s*(select|insert|update|delete|with|begin)\b/i.test(text)) return []
  return wordsBeforeParenthesis(text.replaceAll(ownSyntax, '').replaceAll(qualified, '')).filter(word =>
    names.includes(word),
  )
}
