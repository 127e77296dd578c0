/** Counted once, after all that only adds rows: ten million take longer to count than to use. */
import pg from 'pg'

export interface Expected {
  readonly completed: number
  readonly inProgress: number
}

/** What does not add up. */
export async function countedFaults(place: string, { completed, inProgress }: Expected): Promise<string[]> {
  const client = new pg.Client({ connectionString: place })
  await client.connect()
  const { rows } = await client.query<{ completed: string; others: string }>(
    `select count(*) filter (where state = 2) as completed, count(*) filter (where state <> 2) as others from latchkey.keys`,
  )
  await client.end()
  const [found] = rows
  if (Number(found?.completed) === completed && Number(found?.others) === inProgress) return []
  return [
    `${completed} acknowledged and ${inProgress} abandoned, but ${found?.completed} rows completed and ${found?.others} not`,
  ]
}
