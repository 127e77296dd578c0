import { describeRedis } from '../../../../test/servers/redis/describe-redis.ts'
import { itSurvivesCrashes } from './crashes.cases.ts'

describeRedis('four processes on one Redis', own => itSurvivesCrashes(() => own.server.url, { transactional: false }))
