// A process that keeps the file of SQLite locked: node hold-sqlite.ts <file> <ms>. Nobody else can write meanwhile, as in a long backup.
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'libsql'

const [file = '', ms = ''] = process.argv.slice(2)
const database = new Database(file)
database.exec('pragma busy_timeout = 5000; begin immediate')
process.send?.('held')
await delay(Number(ms))
database.exec('rollback')
database.close()
process.disconnect?.()
