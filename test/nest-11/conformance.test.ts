import 'reflect-metadata'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { describe, expect, it } from 'vitest'
import corePackage from '@nestjs/core/package.json' with { type: 'json' }
import { nestHarness, type NestLibrary } from '../../packages/latchkey/test/http/nest.ts'
import { runAdapterCases } from '@latchkey/conformance'

const quiet = { rawBody: true, logger: false, abortOnError: false, forceCloseConnections: true } as const

// The harness is typed by Nest 12; what it uses is the same in 11.
const nest11 = {
  common,
  create: async (module: new () => object) =>
    (await NestFactory.create<NestExpressApplication>(module, quiet)).useBodyParser('text').useBodyParser('raw'),
} as unknown as NestLibrary

it('is Nest 11 that these cases run on', () => {
  expect(corePackage.version).toMatch(/^11\./)
})

describe('Nest 11 on Express', () => runAdapterCases(nestHarness('Nest 11', nest11, 'returned'), it))
describe('Nest 11 on Express with @Res()', () =>
  runAdapterCases(nestHarness('Nest 11 with @Res()', nest11, '@Res()'), it))
