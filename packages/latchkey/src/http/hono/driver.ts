/** The few members of Hono that the adapter uses, typed by shape: installing Latchkey does not install Hono. */

export interface HonoRequest {
  readonly raw: Request
  /** What was read so far, by the name of the method that read it. */
  readonly bodyCache: object
  arrayBuffer(): Promise<ArrayBuffer>
  text(): Promise<string>
}

export interface HonoContext {
  readonly req: HonoRequest
  /** Assigning it merges the headers of the response that is there; assigning undefined first prevents that. */
  get res(): Response
  set res(response: Response | undefined)
  error: Error | undefined
  /** A response with the headers set so far. */
  body(data: null): Response
  newResponse(data: Response['body'], init: Response): Response
}

export type HonoNext = () => Promise<void>
