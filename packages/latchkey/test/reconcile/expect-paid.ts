import { expect } from 'vitest'
import { request, type ReconcileFixture } from './fixture.ts'

/** It ended once, with the charge in the provider's ledger. */
export async function expectPaid(fixture: ReconcileFixture, label: string): Promise<void> {
  const { provider } = fixture
  expect(provider.charges.map(charge => charge.label)).toEqual([label])
  expect(await fixture.pay.run(request(label))).toMatchObject({
    status: 201,
    value: { charge: provider.charges[0]?.id },
  })
  expect(fixture.receipts()).toBe(1)
  expect(await fixture.place.businessRows(`${label}/receipt`)).toBe(1)
}
