import { describe, expect, test } from 'vitest';
import { FlowCleaner, type FlowTable } from '../../../src/proxy/conntrack.ts';
import type { ChangeOutcome, NetlinkEnd } from '../../../src/netlink/request.ts';
import type { DumpFilter, FlowTest, KernelFlow } from '../../../src/netlink/conntrack.ts';
import { createLog } from '../../../src/log/log.ts';
import { cluster } from '../../plan/cluster.ts';
import { ip } from '../../plan/given.ts';

const DONE: NetlinkEnd = { kind: 'answered', interrupted: false };
const INTERRUPTED: NetlinkEnd = { kind: 'answered', interrupted: true };
const refused = (name: string): NetlinkEnd => ({ kind: 'refused', errno: 1, name });

/** Flows to the cluster IP; each dump ends as the next of `ends` says, and well when there is none left. */
class FakeTable implements FlowTable {
  readonly asked: DumpFilter[] = [];
  readonly ends: NetlinkEnd[] = [];
  outcome: ChangeOutcome['state'] = 'done';
  flowsLeft: readonly KernelFlow[];
  constructor(answerers: readonly string[]) {
    this.flowsLeft = answerers.map((answerer, id) => ({
      protocol: 'UDP',
      destination: ip('10.96.0.10'),
      destinationPort: 53,
      answerer: ip(answerer),
      answererPort: 5353,
      id,
      original: new Uint8Array(),
    }));
  }

  async scan(
    dump: DumpFilter,
    isWanted: FlowTest,
    take: (flows: readonly KernelFlow[]) => void,
  ): Promise<NetlinkEnd> {
    this.asked.push(dump);
    const end = this.ends.shift() ?? DONE;
    const flows = end.kind === 'answered' ? this.flowsLeft : [];
    take(flows.filter(({ protocol, destinationPort }) => isWanted(protocol, destinationPort)));
    return end;
  }

  async remove(flows: readonly KernelFlow[]): Promise<readonly ChangeOutcome[]> {
    if (this.outcome === 'refused') return flows.map(() => ({ state: 'refused', errno: 16, name: 'EBUSY' }));
    this.flowsLeft = this.flowsLeft.filter((flow) => !flows.some(({ id }) => id === flow.id));
    return flows.map(() => ({ state: 'done' }));
  }
}

const WORLD = `kube/dns 10.96.0.10 dns:53/udp
  kube/dns-1 of dns dns:5353/udp | 10.244.0.3 | 10.244.0.4`;

function stage(...answerers: readonly string[]) {
  const table = new FakeTable(answerers);
  const lines: string[] = [];
  const log = createLog({ verbosity: 0, format: 'json', write: (line) => lines.push(line) });
  const cleaner = new FlowCleaner({
    family: 'IPv4',
    localIps: () => [ip('192.0.2.10')],
    log,
    table,
  });
  const made = cluster(WORLD);
  const tell = (text: string) => cleaner.clean(made.tell(text).replan(), made.planner, false);
  return { table, lines, cleaner, made, tell };
}

const LEAVES = 'kube/dns-1 of dns dns:5353/udp | 10.244.0.4';

describe('a cleaning', () => {
  test('deletes what is stale and leaves the rest', async () => {
    const { table, tell } = stage('10.244.0.3', '10.244.0.4', '10.96.0.10');
    expect(await tell(LEAVES)).toMatchObject({ deleted: 2, examined: 3 });
    expect(table.flowsLeft.map(({ answerer }) => answerer)).toEqual(['10.244.0.4']);
    expect(table.asked).toEqual([{ protocol: 'UDP', address: '10.96.0.10', port: 53 }]);
  });

  test('asks nothing where nothing can be stale', async () => {
    const { table, tell } = stage('10.244.0.3');
    expect(await tell(`${LEAVES} | 10.244.0.3 | 10.244.0.5`)).toBeUndefined();
    expect(table.asked).toEqual([]);
  });

  test('asks once for everything where there is much to ask', async () => {
    const { table, tell } = stage('10.96.0.10');
    const services = Array.from({ length: 9 }, (_, index) => `a/s${index} 10.96.1.${index} 53/udp 53/sctp`);
    await tell(services.join('\n'));
    expect(table.asked).toEqual([{ protocol: 'UDP' }, { protocol: 'SCTP' }]);
    expect(table.flowsLeft).toHaveLength(1); // not what was asked about
  });

  test('at the start looks at everything', async () => {
    const { table, cleaner, made } = stage('10.244.0.3', '10.244.0.9');
    expect(await cleaner.clean([], made.planner, true)).toMatchObject({ deleted: 1, examined: 2 });
    expect(table.flowsLeft.map(({ answerer }) => answerer)).toEqual(['10.244.0.3']);
  });
});

describe('what goes wrong', () => {
  test('an interrupted list is asked for again', async () => {
    const { table, tell, lines } = stage('10.244.0.3');
    table.ends.push(INTERRUPTED, refused('EINTR'));
    expect(await tell(LEAVES)).toMatchObject({ deleted: 1 });
    expect(table.asked).toHaveLength(3);
    expect(lines).toEqual([]);
  });

  test('is told once, stops nobody, and is made up for', async () => {
    const { table, tell, lines } = stage('10.244.0.3');
    table.ends.push(refused('EINVAL'), refused('EINVAL'));
    expect(await tell(LEAVES)).toMatchObject({ deleted: 0 });
    expect(await tell('kube/log 10.96.0.11 514/udp')).toMatchObject({ deleted: 0 });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('modprobe nf_conntrack_netlink');
    expect(await tell('kube/log 10.96.0.11 515/udp')).toMatchObject({ deleted: 1 });
    expect(table.flowsLeft).toEqual([]);
  });

  test('a flow that the kernel keeps', async () => {
    const { table, tell, lines } = stage('10.244.0.3', '10.244.0.3');
    table.outcome = 'refused';
    expect(await tell(LEAVES)).toMatchObject({ deleted: 0, examined: 2 });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('EBUSY');
  });
});
