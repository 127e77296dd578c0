export const enemyNames = [
  'hot-keys',
  'http2-streams',
  'distinct-keys',
  'hostile-bodies',
  'unread-bodies',
  'hostile-headers',
  'bad-rows',
  'absent-readers',
  'mixed-tenants',
] as const

export type EnemyName = (typeof enemyNames)[number]
