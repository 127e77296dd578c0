import type { Kafka } from 'kafkajs'

/** How many messages of the topic its group has not committed. */
export async function kafkaLag(kafka: Kafka, topic: string, groupId = topic): Promise<number> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
    const ends = await admin.fetchTopicOffsets(topic)
    const reached = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]))
    // A partition without a commit is at -1.
    return ends.reduce((sum, { partition, high }) => sum + Number(high) - Math.max(0, reached.get(partition) ?? 0), 0)
  } finally {
    await admin.disconnect()
  }
}
