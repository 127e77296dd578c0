/** Every command, in the order of the help. */
import type { CommandSpec } from '../program/command.ts'
import { completion } from './completion.ts'
import { configShow } from './config-show.ts'
import { doctor } from './doctor.ts'
import { init } from './init.ts'
import { migrate } from './migrate.ts'
import { migrateStatus } from './migrate-status.ts'

export const commands: readonly CommandSpec[] = [init, migrate, migrateStatus, doctor, configShow, completion]

/** The words that stand before others, and what they are about. */
export const groups: Readonly<Record<string, string>> = {
  config: 'the settings of this program',
}
