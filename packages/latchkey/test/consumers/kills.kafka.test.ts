import { describeKafka } from '../../../../test/servers/kafka/describe-kafka.ts'
import { itSurvivesKills } from './kills.cases.ts'

describeKafka('consumers of Kafka that are killed', own => itSurvivesKills('kafka', () => own.server.brokers.join(',')))
