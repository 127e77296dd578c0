/** Objects that are handed in by mistake, recognised by their shape, with the line to write instead. */
import { isPostgresJs, isSqlRoot } from '../postgres-js/driver.ts'

export interface WrongObject {
  readonly what: string
  /** What to hand in as `tx`. */
  readonly tx: string
  /** What to hand in to `postgresStore`. */
  readonly store: string
}

interface KnownObject extends WrongObject {
  is(value: object): boolean
}

/** As `tx`, wrong only outside a transaction. */
export const clientOfPg = 'a client of pg'

const ownPool = 'postgresStore({ pool: new Pool({ connectionString }) }), with Pool of pg'

/** The first that fits: some have members of those behind them. */
const known: readonly KnownObject[] = [
  {
    what: 'a promise',
    is: value => has(value, 'then') && has(value, 'finally') && !has(value, 'raw'),
    tx: 'await it',
    store: 'await it',
  },
  {
    what: 'a connection pool of pg',
    is: value => has(value, 'connect', 'query') && 'totalCount' in value,
    tx: "const client = await pool.connect(); await client.query('begin'); … run({ …, tx: client })",
    store: 'postgresStore({ pool })',
  },
  {
    what: clientOfPg,
    is: value => has(value, 'connect', 'query') && 'processID' in value,
    tx: "await client.query('begin') before it",
    store: 'postgresStore({ pool: new Pool({ … }) })',
  },
  {
    what: 'the sql of postgres.js',
    is: value => isPostgresJs(value) && isSqlRoot(value),
    tx: 'sql.begin(tx => … run({ …, tx }))',
    store: 'postgresStore({ sql })',
  },
  {
    what: 'a transaction of postgres.js',
    is: isPostgresJs,
    tx: 'sql.begin(tx => … run({ …, tx }))',
    store: 'postgresStore({ sql }), with what postgres(…) returned',
  },
  {
    what: 'a TypeORM DataSource',
    is: value => has(value, 'createQueryRunner', 'getRepository', 'initialize'),
    tx: 'dataSource.transaction(async manager => … run({ …, tx: await manager.queryRunner.connect() }))',
    store: ownPool,
  },
  {
    what: 'a TypeORM QueryRunner',
    is: value => has(value, 'startTransaction', 'commitTransaction', 'connect'),
    tx: 'tx: await queryRunner.connect(), after queryRunner.startTransaction()',
    store: ownPool,
  },
  {
    what: 'a TypeORM EntityManager',
    is: value => has(value, 'getRepository', 'transaction', 'createQueryBuilder'),
    tx: 'dataSource.transaction(async manager => … run({ …, tx: await manager.queryRunner.connect() }))',
    store: ownPool,
  },
  {
    what: 'a MikroORM EntityManager',
    is: value => has(value, 'getTransactionContext', 'transactional'),
    tx: 'em.transactional(em => … run({ …, tx: em.getTransactionContext() }))',
    store: ownPool,
  },
  {
    what: 'a MikroORM instance',
    is: value => 'em' in value && isObject(value.em) && has(value.em, 'getTransactionContext'),
    tx: 'orm.em.fork().transactional(em => … run({ …, tx: em.getTransactionContext() }))',
    store: ownPool,
  },
  {
    what: 'a Knex transaction',
    is: value => has(value, 'raw') && 'isTransaction' in value && value.isTransaction === true && 'client' in value,
    tx: 'tx: await trx.client.acquireConnection()',
    store: ownPool,
  },
  {
    what: 'a Knex instance',
    is: value => has(value, 'raw', 'transaction') && 'client' in value,
    tx: 'knex.transaction(async trx => … run({ …, tx: await trx.client.acquireConnection() }))',
    store: ownPool,
  },
  {
    what: 'a PrismaClient',
    is: value => has(value, '$queryRawUnsafe', '$connect'),
    tx: 'prisma.$transaction(tx => … run({ …, tx }))',
    store: 'postgresStore({ pool }), with the pool that you give to PrismaPg',
  },
  {
    what: 'a transaction of Prisma',
    is: value => has(value, '$queryRawUnsafe'),
    tx: 'prisma.$transaction(tx => … run({ …, tx }))',
    store: 'postgresStore({ pool }), with the pool that you give to PrismaPg',
  },
  {
    what: 'a Kysely database',
    is: value => has(value, 'executeQuery', 'selectFrom'),
    tx: 'db.transaction().execute(tx => … run({ …, tx }))',
    store: 'postgresStore({ pool }), with the pool that you give to PostgresDialect',
  },
  {
    what: 'a Drizzle database',
    is: value => has(value, 'execute', 'transaction', 'select'),
    tx: 'db.transaction(tx => … run({ …, tx }))',
    store: 'postgresStore({ pool: db.$client }), or postgresStore({ sql: db.$client }) on postgres.js',
  },
]

export function wrongObject(value: unknown): WrongObject | undefined {
  return isObject(value) ? known.find(({ is }) => is(value)) : undefined
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' || typeof value === 'function') && value !== null
}

function has(value: object, ...methods: readonly string[]): boolean {
  return methods.every(method => typeof Reflect.get(value, method) === 'function')
}
