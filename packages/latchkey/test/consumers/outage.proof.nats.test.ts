import { describeNats } from '../../../../test/servers/nats/describe-nats.ts'
import { itSurvivesAnOutage } from './outage.cases.ts'

describeNats('a consumer of NATS', own => itSurvivesAnOutage('nats', () => own.server.url))
