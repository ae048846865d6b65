/** Packets that the kernel counted for rules of ours. */
import type { MetricFamily } from './exposition.ts';
import type { Collector } from './instruments.ts';

/** Each reads one counter; `undefined`: it cannot be read now. */
export interface PacketCounters {
  readonly invalidDropped?: (() => bigint | undefined) | undefined;
  readonly localhostNodePorts?: (() => bigint | undefined) | undefined;
}

const KNOWN = [
  {
    counter: 'invalidDropped',
    name: 'kubeproxy_iptables_ct_state_invalid_dropped_packets_total',
    help: '[ALPHA] packets dropped by iptables to work around conntrack problems',
  },
  {
    counter: 'localhostNodePorts',
    name: 'kubeproxy_iptables_localhost_nodeports_accepted_packets_total',
    help: '[ALPHA] Number of packets accepted on nodeports of loopback interface',
  },
] as const;

export function packetCounters(counters: PacketCounters): Collector {
  return {
    collect: () =>
      KNOWN.flatMap(({ counter, name, help }): readonly MetricFamily[] => {
        const packets = counters[counter]?.();
        if (packets === undefined) return [];
        return [
          { name, help, type: 'counter', samples: [{ suffix: '', labels: [], value: Number(packets) }] },
        ];
      }),
  };
}
