import { type BodyRead, tooLarge } from '../exchange/request.ts'
import { declaredLength, readWithin } from '../web/body.ts'

/**
 * Reads the body of a fetch `Request` up to a limit, from a clone: the handler finds it unread, on an object of the server's own class (a
 * NextRequest has cookies).
 */
export async function readClone(request: Request, bytesMax: number): Promise<BodyRead> {
  const declared = declaredLength(request)
  if (declared === undefined) return readWithin(request.clone().body, bytesMax)
  if (declared > bytesMax) return tooLarge(bytesMax)
  return { kind: 'bytes', bytes: new Uint8Array(await request.clone().arrayBuffer()) }
}
