import 'reflect-metadata'
import { Body, Controller, HttpCode, Module, Post } from '@nestjs/common'
import { createLatchkey, type GuardedExecution, singleTenant } from 'latchkey'
import { Idempotent, LatchkeyExecution, LatchkeyModule } from 'latchkey/http/nest'
import { memoryStore } from 'latchkey/stores/memory'

export const latchkey = createLatchkey({ store: memoryStore(), scope: singleTenant })
const createOrder = latchkey.guarded('orders.create', { onFailure: 'rerun' })

let orders = 0

@Controller('orders')
export class OrdersController {
  @Post()
  @HttpCode(201)
  @Idempotent(createOrder)
  create(@Body() body: { sku: string }, @LatchkeyExecution() { id }: GuardedExecution) {
    orders += 1
    return { order: orders, sku: body.sku, id }
  }
}

@Module({ imports: [LatchkeyModule.forRoot({ latchkey })], controllers: [OrdersController] })
export class OrdersModule {}
