import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { describeKafka } from '../../../../test/servers/kafka/describe-kafka.ts'
import { kafkaLag } from './kafka-lag.ts'
import { itSurvivesKills, type KilledBroker } from './kills.cases.ts'

describeKafka('consumers of Kafka that are killed', own => {
  const client = () => new Kafka({ brokers: [...own.server.brokers], logLevel: logLevel.NOTHING })
  const broker = (): KilledBroker => ({
    name: 'kafka',
    url: own.server.brokers.join(','),
    async publish(kind, ids) {
      const producer = client().producer({ createPartitioner: Partitioners.DefaultPartitioner })
      await producer.connect()
      // By its key, a message has a partition.
      const messages = ids.map(id => ({ key: id, value: id, headers: { 'message-id': id } }))
      await producer.send({ topic: `killed-${kind}`, messages })
      await producer.disconnect()
    },
    waiting: kind => kafkaLag(client(), `killed-${kind}`),
  })
  itSurvivesKills(broker)
})
