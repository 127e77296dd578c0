/** The questions of operators, bundled like the servers: `operators.mjs '{"url": …}'` answers over its channel. */
import { measureOperators, type OperatorsOrder } from './measure.ts'

const order: OperatorsOrder = JSON.parse(process.argv[2] ?? '{}')
process.send?.(await measureOperators(order))
process.disconnect()
