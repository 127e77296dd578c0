import type { Operators, OperatorVerdict } from 'latchkey'

/** Ends one unknown row, and prints what the row says about itself before and after. */
export async function settle(latchkey: Operators, id: string, verdict: OperatorVerdict, by: string): Promise<string> {
  const { record, evidence, audit } = await latchkey.inspect({ id })
  console.log(record?.operation, record?.state, { evidence, audit })
  const result = await latchkey.settle({ id }, verdict, { by, reason: 'looked up in the portal of the provider' })
  switch (result.kind) {
    case 'settled':
      return 'settled: clients get this answer from now on'
    case 'wrong-verdict':
      return `nothing changed: this row needs { ${result.needs} }${result.effect === undefined ? '' : ` of the effect ${result.effect}`}`
    case 'wrong-state':
      return `nothing changed: the row is ${result.state}`
    case 'not-found':
      return 'nothing changed: there is no such row'
  }
}
