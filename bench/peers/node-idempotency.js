// @node-idempotency/core with its own Redis adapter, as its framework packages wire it.
import core from '@node-idempotency/core'
import adapter from '@node-idempotency/storage-adapter-redis'

export async function open(place) {
  const storage = new adapter.RedisStorageAdapter({ url: place })
  await storage.connect()
  const idempotency = new core.Idempotency(storage)
  const statuses = { REQUEST_IN_PROGRESS: 409, IDEMPOTENCY_FINGERPRINT_MISSMATCH: 422 }
  return {
    kind: 'plain',
    async run({ key, body, path }, handle) {
      const request = { headers: { 'idempotency-key': key }, path, method: 'POST', body }
      try {
        const kept = await idempotency.onRequest(request)
        if (kept !== undefined) return { receipt: kept.body }
      } catch (error) {
        if (statuses[error.code] !== undefined) return { status: statuses[error.code] }
        throw error
      }
      const receipt = await handle()
      await idempotency.onResponse(request, { body: receipt, additional: { statusCode: 201 } })
      return { receipt }
    },
    stored: () => storage.client.dbSize(),
  }
}
