/** A faculty that the store of a test has. */
export function present<T>(faculty: T | undefined): T {
  if (faculty === undefined) throw new Error('the store of this test lacks a faculty that the test uses')
  return faculty
}
