/** One version for all packages: the tables that this program knows are those of the library of the same version. A test compares it. */
export const version: string = '0.1.0'
