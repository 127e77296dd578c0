/** Preloaded into a process whose wall clock is wrong by TORTURE_CLOCK_MS. */
const offMs = Number(process.env['TORTURE_CLOCK_MS'] ?? 0)
const real = Date.now
Date.now = () => real() + offMs
