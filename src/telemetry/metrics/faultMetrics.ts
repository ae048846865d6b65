/** Faults that the process survived. */
import { faultCounts } from '../../faults.ts';
import type { Collector } from './instruments.ts';

export const faultMetrics: Collector = {
  collect: () => [
    {
      name: 'junction_faults_total',
      help: 'Faults that were survived: programs that could not be started or hung, netlink messages that were unreadable, lost or forged',
      type: 'counter',
      samples: [...faultCounts()].map(([fault, value]) => ({
        suffix: '',
        labels: [['fault', fault]],
        value,
      })),
    },
  ],
};
