/**
 * A Prisma client without models, made as the code that `prisma generate` writes makes it (7.10, query compiler in WebAssembly). Its
 * transactions are Prisma's own, and raw queries are all that goes through them; generating models would need binaries that npm does not have.
 */
import { PrismaPg } from '@prisma/adapter-pg'
import { getPrismaClient } from '@prisma/client/runtime/client'
import pg from 'pg'

/** What the tests call of it. */
export interface Prisma {
  $transaction<T>(work: (tx: Pick<Prisma, '$executeRawUnsafe'>) => Promise<T>): Promise<T>
  $executeRawUnsafe(text: string, ...values: unknown[]): Promise<number>
  $disconnect(): Promise<void>
}

/** The files of the query compiler come without types. */
const compilerFile = (name: string) => import(`@prisma/client/runtime/query_compiler_fast_bg.postgresql${name}.mjs`)

/** Its types are in the library of the browser. */
const webAssembly: { Module: new (bytes: Uint8Array) => unknown } = Reflect.get(globalThis, 'WebAssembly')

const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: 'none',
  activeProvider: 'postgresql',
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  // Four counts of nothing.
  parameterizationSchema: { strings: [], graph: Buffer.alloc(4).toString('base64') },
  compilerWasm: {
    getRuntime: () => compilerFile(''),
    async getQueryCompilerWasmModule() {
      const { wasm } = await compilerFile('.wasm-base64')
      return new webAssembly.Module(Buffer.from(wasm, 'base64'))
    },
    importName: './query_compiler_fast_bg.js',
  },
})

/** Prisma asks a pool for its connections; this one has the transaction's and no other. */
export function prismaOn(tx: pg.PoolClient): Prisma {
  const pool = Object.assign(new pg.Pool(), { connect: async () => tx, query: tx.query })
  // Generated code says the same: the class has no types without models.
  return new PrismaClient({ adapter: new PrismaPg(pool) }) as unknown as Prisma
}
