import { describePostgres } from '../../../../test/servers/describe-postgres.ts'
import { openPlace, withoutBatching } from '../processes/database.ts'
import { itAuthorisesBeforeARowChangesHands } from './replay.cases.ts'

describePostgres('a row of somebody else, on PostgreSQL', database => {
  itAuthorisesBeforeARowChangesHands(async () => {
    const place = await openPlace(database.url)
    await place.migrate()
    return place
  })
})

describePostgres('a row of somebody else, on PostgreSQL without group commit', database => {
  itAuthorisesBeforeARowChangesHands(async () => {
    const place = await openPlace(withoutBatching(database.url))
    await place.migrate()
    return place
  })
})
