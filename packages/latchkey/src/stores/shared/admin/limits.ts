/** The bounds of the operators' tables and queries. */

/** Minutes are kept for a day, and so is a worker that is silent. */
export const fleetKeptMs: number = 24 * 3_600_000
/** Proposals and plans that are over. */
export const decidedKeptMs: number = 30 * 24 * 3_600_000
/** What a list of groups counts to. */
export const groupedMax = 10_000
/** No query of an operator takes longer: a screen that waits longer is reloaded, and asks twice. */
export const queryMsMax = 2_000
/** How far back leases are looked at: a sweeper, which has an hour for it, finds what is older. */
export const overdueWithinMs = 3_600_000
