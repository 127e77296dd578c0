import { describeRabbitmq } from '../../../../test/servers/rabbitmq/describe-rabbitmq.ts'
import { itSurvivesAnOutage } from './outage.cases.ts'

describeRabbitmq('a consumer of RabbitMQ', own => itSurvivesAnOutage('rabbitmq', () => own.url))
