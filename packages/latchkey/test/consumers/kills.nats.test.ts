import { describeNats } from '../../../../test/servers/nats/describe-nats.ts'
import { itSurvivesKills } from './kills.cases.ts'

describeNats('consumers of NATS that are killed', own => itSurvivesKills('nats', () => own.server.url))
