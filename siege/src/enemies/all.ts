import { absentReaders } from './absent-readers.ts'
import { badRows } from './bad-rows.ts'
import { distinctKeys } from './distinct-keys.ts'
import type { Attack } from './enemy.ts'
import { hostileBodies } from './hostile-bodies.ts'
import { hostileHeaders } from './hostile-headers.ts'
import { hotKeys } from './hot-keys.ts'
import { http2Streams } from './http2-streams.ts'
import { mixedTenants } from './mixed-tenants.ts'
import type { EnemyName } from './names.ts'
import { unreadBodies } from './unread-bodies.ts'

export const attacks: Readonly<Record<EnemyName, Attack>> = {
  'hot-keys': hotKeys,
  'http2-streams': http2Streams,
  'distinct-keys': distinctKeys,
  'hostile-bodies': hostileBodies,
  'unread-bodies': unreadBodies,
  'hostile-headers': hostileHeaders,
  'bad-rows': badRows,
  'absent-readers': absentReaders,
  'mixed-tenants': mixedTenants,
}
