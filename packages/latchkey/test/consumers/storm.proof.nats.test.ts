import { describeNats } from '../../../../test/servers/nats/describe-nats.ts'
import { itSurvivesAStorm } from './storm.cases.ts'

describeNats('consumers of NATS that are killed one after the other', own =>
  itSurvivesAStorm('nats', () => own.server.url),
)
