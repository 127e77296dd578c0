import type { Latchkey } from 'latchkey'

declare const latchkey: Latchkey<unknown, unknown>
declare function yourSession(request: Request): Promise<{ email: string; isOnCall: boolean } | undefined>

export { latchkey, yourSession }
