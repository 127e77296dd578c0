export type { LoopHealth } from './loop.ts'
export type { WorkerName, WorkersHost, WorkersOptions } from './options.ts'
export { createWorkers, type Workers } from './workers.ts'
