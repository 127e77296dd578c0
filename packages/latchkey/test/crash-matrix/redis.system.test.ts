import { describeRedis } from '../../../../test/servers/redis/describe-redis.ts'
import { itSurvivesEveryPoint } from './crash-matrix.cases.ts'
import { kindsWithoutTransactions } from './scenarios.ts'

describeRedis('the crash matrix on Redis', own => itSurvivesEveryPoint(() => own.server.url, kindsWithoutTransactions))
