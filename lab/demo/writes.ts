/** What Junction wrote into the kernel and why, as its log says. */
import { countOf, type LogLine } from './junctionProcess.ts';
import type { DemoMode } from './options.ts';

/** What each mode counts, by the fields of the log line. */
const NOUNS: Readonly<Record<DemoMode, Readonly<Record<string, string>>>> = {
  iptables: { chains: 'chain', rules: 'rule' },
  nftables: { chains: 'chain', rules: 'element' },
  // Virtual servers, their endpoints, entries of sets, addresses.
  ipvs: { chains: 'chain', rules: 'rule', objects: 'IPVS object' },
};

/** Fields of a warning that say more than its message, in this order. */
const TELLING = ['changedBy', 'objects', 'service', 'reason', 'err', 'whatToDo'];

/** `Junction wrote IPv4 in 3.1 ms (1 chain, 3 rules): EndpointSlice shop/idle-ipv4: endpoint 10.244.2.12 ready` */
export function describeWrite(line: LogLine, mode: DemoMode): string {
  const counts = Object.entries(NOUNS[mode])
    .filter(([field]) => Number(line[field] ?? 0) > 0)
    .map(([field, noun]) => countOf(line[field], noun));
  const what = counts.length === 0 ? '' : ` (${counts.join(', ')})`;
  const cause = printCause(line);
  return `Junction wrote ${String(line['ipFamily'])} in ${String(line['milliseconds'])} ms${what}${cause && `: ${cause}`}`;
}

/** Of a full sync, which looks at everything, that is said too. */
export function printCause(line: LogLine): string {
  const { kind, cause } = line;
  if (typeof cause !== 'string') return '';
  return kind === 'full' ? `full sync: ${cause}` : cause;
}

export function describeWarning(line: LogLine): string {
  const details = TELLING.flatMap((field) => (field in line ? [`${field} ${String(line[field])}`] : []));
  return `Junction: ${line.msg}${details.length > 0 ? ` (${details.join('; ')})` : ''}`;
}
