/** The console: its files for `adminRoutes`, and a door for one person at this machine. */
export { type ConsoleFile, consoleFiles } from './files.ts'
export { loopbackConsole, type LoopbackConsole, type LoopbackOptions } from './loopback.ts'
