import { expect } from 'vitest'
import { request, type Stage } from './fixture.ts'

/** It ended once, with the charge that the provider has in its books. */
export async function expectPaid(stage: Stage, label: string): Promise<void> {
  const { provider } = stage
  expect(provider.charges.map(charge => charge.label)).toEqual([label])
  expect(await stage.pay.run(request(label))).toMatchObject({
    status: 201,
    value: { charge: provider.charges[0]?.id },
  })
  expect(stage.receipts()).toBe(1)
  expect(await stage.place.businessRows(`${label}/receipt`)).toBe(1)
}
