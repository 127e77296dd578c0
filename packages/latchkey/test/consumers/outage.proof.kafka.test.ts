import { describeKafka } from '../../../../test/servers/kafka/describe-kafka.ts'
import { itSurvivesAnOutage } from './outage.cases.ts'

describeKafka('a consumer of Kafka', own => itSurvivesAnOutage('kafka', () => own.server.brokers.join(',')))
