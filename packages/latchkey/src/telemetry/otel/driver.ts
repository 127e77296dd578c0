/** `@opentelemetry/api`, by what is called of it: so that it need not be installed where it is not used. */

export interface OtelMeter {
  createHistogram(name: string, options?: InstrumentOptions): OtelHistogram
  createObservableCounter(name: string, options?: InstrumentOptions): OtelObservable
  createObservableGauge(name: string, options?: InstrumentOptions): OtelObservable
}

export interface InstrumentOptions {
  description?: string
  unit?: string
  advice?: { explicitBucketBoundaries?: number[] }
}

type Attributes = Record<string, string>

export interface OtelHistogram {
  record(value: number, attributes?: Attributes): void
}

/** Read when metrics are collected. */
export interface OtelObservable {
  addCallback(callback: (result: OtelResult) => void): void
}

export interface OtelResult {
  observe(value: number, attributes?: Attributes): void
}

export interface OtelTracer {
  startActiveSpan(name: string, options: { attributes?: Attributes }, run: (span: OtelSpan) => void): unknown
}

export interface OtelSpan {
  setStatus(status: { code: number; message?: string }): unknown
  end(): void
}

/** `SpanStatusCode.ERROR`. */
export const spanError = 2
