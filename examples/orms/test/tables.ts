/** The tables of the examples. */
import type pg from 'pg'

export async function createTables(pool: pg.Pool): Promise<void> {
  await pool.query(`
    create table orders (id serial primary key, sku text not null);
    create table parcels (order_id integer not null)`)
}
