/** The measurement of the fingerprint, bundled like the servers: `fingerprint.mjs '{"code": …}'` answers over its channel. */
import { type FingerprintOrder, type FingerprintRequest, measureFingerprint } from './measure.ts'

const { code }: FingerprintOrder = JSON.parse(process.argv[2] ?? '{}')
const { fingerprintRequest } = (await import(code)) as { fingerprintRequest: FingerprintRequest }
process.send?.(measureFingerprint(fingerprintRequest))
process.disconnect()
