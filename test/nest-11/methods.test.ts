import 'reflect-metadata'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { NestLibrary } from '../../packages/latchkey/test/http/nest.ts'
import { itInjectsOperations } from '../../packages/latchkey/test/nest/injection.cases.ts'
import { itClaimsInTheMethod } from '../../packages/latchkey/test/nest/pipes.cases.ts'

const quiet = { rawBody: true, logger: false, abortOnError: false, forceCloseConnections: true } as const

type Class = new () => object

// The cases are typed by Nest 12; what they use is the same in 11.
const platforms = {
  'Nest 11 on Express': { common, create: (module: Class) => NestFactory.create(module, quiet) },
  'Nest 11 on Fastify': {
    common,
    create: (module: Class) => NestFactory.create(module, new FastifyAdapter({ forceCloseConnections: true }), quiet),
  },
} as unknown as Record<string, NestLibrary>

for (const [name, nest] of Object.entries(platforms)) {
  itClaimsInTheMethod(name, nest)
  itInjectsOperations(name, nest)
}
