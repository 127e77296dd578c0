import 'reflect-metadata'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { NestLibrary } from '../http/nest.ts'
import { itInjectsOperations } from './injection.cases.ts'
import { itClaimsInTheMethod } from './pipes.cases.ts'

const quiet = { rawBody: true, logger: false, abortOnError: false, forceCloseConnections: true } as const

const platforms: Record<string, NestLibrary> = {
  'Nest 12 on Express': { common, create: module => NestFactory.create(module, quiet) },
  'Nest 12 on Fastify': {
    common,
    create: module => NestFactory.create(module, new FastifyAdapter({ forceCloseConnections: true }), quiet),
  },
}

for (const [name, nest] of Object.entries(platforms)) {
  itClaimsInTheMethod(name, nest)
  itInjectsOperations(name, nest)
}
