import { describeKafka } from '../../../../test/servers/kafka/describe-kafka.ts'
import { itSurvivesAStorm } from './storm.cases.ts'

describeKafka('consumers of Kafka that are killed one after the other', own =>
  itSurvivesAStorm('kafka', () => own.server.brokers.join(',')),
)
