// Makes one of the mistakes: `tsx run-setup.ts "a misspelt option"`, with the address of an empty database in DATABASE_URL.
import { setups } from './setups.ts'

const setup = setups.find(({ mistake }) => mistake === process.argv[2])
if (setup === undefined) throw new Error(`there is no mistake called ${JSON.stringify(process.argv[2])}`)
try {
  await setup.run(process.env.DATABASE_URL ?? '')
} catch (error) {
  const { name, code, message } = error as Error & { code?: string }
  console.log(`${name} [${code}]: ${message}`)
}
// Idle pools would keep it alive for ten seconds.
process.exit(0)
