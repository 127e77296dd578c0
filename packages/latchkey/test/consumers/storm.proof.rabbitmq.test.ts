import { describeRabbitmq } from '../../../../test/servers/rabbitmq/describe-rabbitmq.ts'
import { itSurvivesAStorm } from './storm.cases.ts'

describeRabbitmq('consumers of RabbitMQ that are killed one after the other', own =>
  itSurvivesAStorm('rabbitmq', () => own.url),
)
