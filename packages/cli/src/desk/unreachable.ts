/** The compiler counts the cases. A server of another release may know one more. */
export function unreachable(value: never): string {
  return `the server answered something that this version does not know: ${JSON.stringify(value)}`
}
