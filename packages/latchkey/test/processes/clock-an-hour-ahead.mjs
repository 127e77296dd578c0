// Preloaded into a process: its wall clock is an hour ahead of everybody else's.
const real = Date.now
Date.now = () => real() + 3_600_000
