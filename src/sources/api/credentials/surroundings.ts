/** What credentials ask of the machine. */
import type { Clock } from '../../../sync/clock.ts';
import type { PluginRunner } from './runPlugin.ts';

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => Promise<string>;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  readonly runPlugin: PluginRunner;
}
