/** What every example opens: an application with `POST /orders`, and the end of its connections. */
import type { Hono } from 'hono'

export interface Shop {
  readonly app: Hono
  close(): Promise<unknown>
}
