import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { OrdersModule } from './orders'

describe('orders', () => {
  let app: INestApplication

  beforeAll(async () => {
    const module = await Test.createTestingModule({ imports: [OrdersModule] }).compile()
    app = module.createNestApplication({ rawBody: true })
    await app.listen(0, '127.0.0.1')
  })

  afterAll(() => app.close())

  it('are created once, and a retry gets the first answer', async () => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'order-7' }
    const url = `${await app.getUrl()}/orders`
    const post = () => fetch(url, { method: 'POST', headers, body: '{"sku":"tea"}' })
    const [first, retry] = [await post(), await post()]
    expect([first.status, retry.status]).toEqual([201, 201])
    expect(retry.headers.get('idempotent-replayed')).toBe('true')
    expect(await retry.text()).toBe(await first.text())
  })
})
