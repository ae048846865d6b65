/** Connection tracking: whether its table is full, and what it drops. */
import type { GroupFindings } from './group.ts';
import type { DoctorMachine } from './machine.ts';

const COUNT = 'net/netfilter/nf_conntrack_count';
const MAX = 'net/netfilter/nf_conntrack_max';
const FULL = 0.95;
const NEARLY_FULL = 0.8;

/** Counters of /proc/net/stat/nf_conntrack, over all processors. */
type ConntrackStatistics = ReadonlyMap<string, number>;

/** A line of names, then a line of hexadecimal numbers for each processor. `entries` is the same number in each. */
function parseConntrackStatistics(text: string): ConntrackStatistics {
  const [header = '', ...rows] = text.trim().split('\n');
  const names = header.trim().split(/\s+/);
  const sums = new Map<string, number>();
  for (const row of rows)
    for (const [index, word] of row.trim().split(/\s+/).entries()) {
      const name = names[index] ?? '';
      const value = Number.parseInt(word, 16);
      sums.set(name, name === 'entries' ? value : (sums.get(name) ?? 0) + value);
    }
  return sums;
}

export function readConntrackStatistics(machine: Pick<DoctorMachine, 'procFile'>): ConntrackStatistics {
  return parseConntrackStatistics(machine.procFile('net/stat/nf_conntrack') ?? '');
}

/** `before`: the counters some time ago, so that what grows is known from what once was. */
export function checkConntrack(
  group: GroupFindings,
  machine: Pick<DoctorMachine, 'sysctl' | 'procFile'>,
  before: ConntrackStatistics,
): void {
  const count = Number(machine.sysctl(COUNT) ?? Number.NaN);
  const max = Number(machine.sysctl(MAX) ?? Number.NaN);
  if (Number.isNaN(count) || Number.isNaN(max)) {
    group.notEvaluated('conntrack', 'nf_conntrack is not loaded, or /proc/sys/net/netfilter cannot be read');
    return;
  }
  const statistics = readConntrackStatistics(machine);
  const grown = (name: string): number => (statistics.get(name) ?? 0) - (before.get(name) ?? 0);
  checkFullness(group, { count, max, dropped: statistics.get('drop') ?? 0, now: grown('drop') });
  checkInsertions(group, statistics.get('insert_failed') ?? 0, grown('insert_failed'));
}

interface Fullness {
  readonly count: number;
  readonly max: number;
  /** Since the node started. */
  readonly dropped: number;
  /** Since doctor did. */
  readonly now: number;
}

function checkFullness(group: GroupFindings, { count, max, dropped, now }: Fullness): void {
  const isFull = max > 0 && count >= max * FULL;
  const percent = max > 0 ? `${Math.floor((count / max) * 100)} %` : 'no limit';
  const evidence = `${count} of ${max} connections (${percent}); ${dropped} packets dropped since the node started, ${now} since doctor did`;
  const cure = `sysctl -w net.netfilter.nf_conntrack_max=${Math.max(max * 2, 131_072)}, and --conntrack-max-per-core so that it stays; conntrack -L | awk '{print $1}' | sort | uniq -c shows what fills it`;
  if (isFull || now > 0)
    group.found({
      code: 'conntrack-full',
      severity: 'error',
      text: 'the table of tracked connections is full',
      evidence,
      consequence: 'the kernel drops the first packet of new connections, to services and to everything else',
      cure,
    });
  else if (max > 0 && count >= max * NEARLY_FULL)
    group.found({
      code: 'conntrack-nearly-full',
      severity: 'warning',
      text: 'the table of tracked connections is nearly full',
      evidence,
      consequence: 'once it is full, new connections are dropped',
      cure,
    });
  else if (dropped > 0)
    group.found({
      code: 'conntrack-was-full',
      severity: 'info',
      text: 'the table of tracked connections was full once',
      evidence,
      consequence: 'new connections were dropped then',
      cure,
    });
  else group.fine(`${count} of ${max} connections are tracked (${percent}), none was dropped`);
}

/** Two packets of one flow at once, mostly DNS over UDP: both are translated, and the second is dropped. */
function checkInsertions(group: GroupFindings, failed: number, now: number): void {
  if (failed === 0) return;
  group.found({
    code: 'conntrack-insert-failed',
    severity: now > 0 ? 'warning' : 'info',
    text: 'packets were dropped because their connection was being tracked already',
    evidence: `insert_failed in /proc/net/stat/nf_conntrack: ${failed} since the node started, ${now} since doctor did`,
    consequence:
      'a client that sends two UDP packets from one port at once, as a resolver does, loses one, and waits for its time-out',
    cure: 'single-request-reopen in the dnsConfig of the pods, or NodeLocal DNSCache',
  });
}
