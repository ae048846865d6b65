/** The process as the kernel sees it. Read when somebody asks, never in between. */
import { readdirSync, readFileSync } from 'node:fs';
import type { MetricFamily, MetricType } from './exposition.ts';
import type { Collector } from './instruments.ts';

export const processMetrics: Collector = {
  collect: () => {
    const { user, system } = process.cpuUsage();
    const limits = readIfThere('/proc/self/limits');
    const virtualKib = /^VmSize:\s+(\d+) kB/m.exec(readIfThere('/proc/self/status'))?.[1];
    const network = ipOctets(readIfThere('/proc/self/net/netstat'));
    const maxFds = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return [
      ...single(
        'process_cpu_seconds_total',
        'counter',
        'Total user and system CPU time spent in seconds.',
        (user + system) / 1e6,
      ),
      ...single(
        'process_resident_memory_bytes',
        'gauge',
        'Resident memory size in bytes.',
        process.memoryUsage.rss(),
      ),
      ...single(
        'process_virtual_memory_bytes',
        'gauge',
        'Virtual memory size in bytes.',
        virtualKib === undefined ? undefined : Number(virtualKib) * 1024,
      ),
      ...single(
        'process_virtual_memory_max_bytes',
        'gauge',
        'Maximum amount of virtual memory available in bytes.',
        addressSpace(limits),
      ),
      ...single(
        'process_network_receive_bytes_total',
        'counter',
        'Number of bytes received by the process over the network.',
        network?.received,
      ),
      ...single(
        'process_network_transmit_bytes_total',
        'counter',
        'Number of bytes sent by the process over the network.',
        network?.sent,
      ),
      ...single('process_open_fds', 'gauge', 'Number of open file descriptors.', countFds()),
      ...single(
        'process_max_fds',
        'gauge',
        'Maximum number of open file descriptors.',
        maxFds === undefined ? undefined : Number(maxFds),
      ),
      ...single(
        'process_start_time_seconds',
        'gauge',
        'Start time of the process since unix epoch in seconds.',
        STARTED_AT_SECONDS,
      ),
    ];
  },
};

const STARTED_AT_SECONDS = Math.round(performance.timeOrigin / 10) / 100;

/** Without a limit it is the largest number of 64 bits, as Prometheus' library for Go says it. */
function addressSpace(limits: string): number | undefined {
  const limit = /^Max address space\s+(\S+)/m.exec(limits)?.[1];
  return limit === 'unlimited' ? 2 ** 64 : limit === undefined ? undefined : Number(limit);
}

/** Of the network namespace: the kernel counts by nothing smaller, and kube-proxy shows the same. */
function ipOctets(netstat: string): { readonly received: number; readonly sent: number } | undefined {
  const [names = [], values = []] = netstat
    .split('\n')
    .filter((line) => line.startsWith('IpExt: '))
    .map((line) => line.split(' '));
  const value = (name: string): number => Number(values[names.indexOf(name)]);
  return names.length === 0 ? undefined : { received: value('InOctets'), sent: value('OutOctets') };
}

function single(
  name: string,
  type: MetricType,
  help: string,
  value: number | undefined,
): readonly MetricFamily[] {
  if (value === undefined || !Number.isFinite(value)) return [];
  return [{ name, help, type, samples: [{ suffix: '', labels: [], value }] }];
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function countFds(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length - 1; // without the one that reads the folder
  } catch {
    return undefined;
  }
}
