/** Service-level indicators: what the checks behind `/healthz` of the metrics port answered. */
import { Counter, Gauge } from './instruments.ts';
import { Registry } from './registry.ts';

export class HealthcheckMetrics {
  readonly #registry = new Registry();
  readonly #last = this.#registry.add(
    new Gauge({
      name: 'kubernetes_healthcheck',
      help: '[STABLE] This metric records the result of a single healthcheck.',
      labels: ['name', 'type'],
    }),
  );
  readonly #total = this.#registry.add(
    new Counter({
      name: 'kubernetes_healthchecks_total',
      help: '[STABLE] This metric records the results of all healthcheck.',
      labels: ['name', 'status', 'type'],
    }),
  );

  checked(name: string, type: string, succeeded: boolean): void {
    this.#last.set({ name, type }, succeeded ? 1 : 0);
    this.#total.add({ name, type, status: succeeded ? 'success' : 'error' });
  }

  reset(): void {
    this.#last.reset();
    this.#total.reset();
  }

  print(): Promise<string> {
    return this.#registry.print();
  }
}
