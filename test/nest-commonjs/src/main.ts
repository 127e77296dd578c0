import { NestFactory } from '@nestjs/core'
import { OrdersModule } from './orders'

async function main(): Promise<void> {
  const app = await NestFactory.create(OrdersModule, { rawBody: true, logger: false })
  await app.listen(0, '127.0.0.1')
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'order-7' }
  const url = `${await app.getUrl()}/orders`
  for (let attempt = 1; attempt <= 2; attempt++) {
    const response = await fetch(url, { method: 'POST', headers, body: '{"sku":"tea"}' })
    const replayed = response.headers.get('idempotent-replayed') === 'true'
    console.log(response.status, await response.text(), replayed ? 'replayed' : 'first')
  }
  await app.close()
}

void main()
