/** The registry of `prom-client`, by the one method that is called. */
export interface PrometheusRegistry {
  registerMetric(metric: PrometheusMetric): void
}

/** What a registry asks of a metric. */
export interface PrometheusMetric {
  get(): Promise<object>
  reset(): void
}
