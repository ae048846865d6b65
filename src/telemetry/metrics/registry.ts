/** Everything that is shown at one address. */
import { type MetricFamily, printFamilies } from './exposition.ts';
import type { Collector } from './instruments.ts';

export class Registry {
  readonly #collectors: Collector[] = [];

  add<T extends Collector>(collector: T): T {
    this.#collectors.push(collector);
    return collector;
  }

  async collect(): Promise<readonly MetricFamily[]> {
    const families: MetricFamily[] = [];
    for (const collector of this.#collectors) families.push(...(await collector.collect()));
    return families;
  }

  async print(): Promise<string> {
    return printFamilies(await this.collect());
  }
}
