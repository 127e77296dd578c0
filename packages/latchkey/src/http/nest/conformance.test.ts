import 'reflect-metadata'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { describe, it } from 'vitest'
import { nestHarness, type NestLibrary } from '../../../test/http/nest.ts'
import { runAdapterCases } from '@latchkey/conformance'

const quiet = { rawBody: true, logger: false, abortOnError: false, forceCloseConnections: true } as const

const onExpress: NestLibrary = {
  common,
  create: async module =>
    (await NestFactory.create<NestExpressApplication>(module, quiet)).useBodyParser('text').useBodyParser('raw'),
}

const onFastify: NestLibrary = {
  common,
  async create(module) {
    const adapter = new FastifyAdapter({ forceCloseConnections: true })
    const app = await NestFactory.create<NestFastifyApplication>(module, adapter, quiet)
    return app.useBodyParser('application/octet-stream')
  },
}

describe('Nest 12 on Express', () => runAdapterCases(nestHarness('Nest on Express', onExpress, 'returned'), it))
describe('Nest 12 on Express with @Res()', () =>
  runAdapterCases(nestHarness('Nest with @Res()', onExpress, '@Res()'), it))
describe('Nest 12 on Fastify', () => runAdapterCases(nestHarness('Nest on Fastify', onFastify, 'returned'), it))
