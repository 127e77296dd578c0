import { describeRabbitmq } from '../../../../test/servers/rabbitmq/describe-rabbitmq.ts'
import { itSurvivesKills } from './kills.cases.ts'

describeRabbitmq('consumers of RabbitMQ that are killed', own => itSurvivesKills('rabbitmq', () => own.url))
