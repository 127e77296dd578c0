// npm run observe     writes the table of metrics into docs/observe/README.md
import { readFileSync, writeFileSync } from 'node:fs'
import { withMetricsTable } from './observe/table.ts'

const page = new URL('../docs/observe/README.md', import.meta.url)
writeFileSync(page, withMetricsTable(readFileSync(page, 'utf8')))
