/**
 * Clients that send from one port for ever, as resolvers and telemetry do: the kernel keeps sending what they send to
 * where their first packet went, unless somebody makes it forget.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { type Host, REQUEST_TIMEOUT_MS } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const DNS = '10.96.1.1';
const DNS_6 = 'fd00:96::1:1';
const OTHER = '10.96.1.2';
const NODE = '192.168.100.2';
const NODE_6 = 'fd00:100::2';
const NODE_PORT = 30_053;
const SOURCE = 40_001;

const udp = (services: readonly ServiceWords[]): string =>
  manifests(services).replaceAll('protocol: TCP', 'protocol: UDP');

/** Where silence is expected, or asked again: not for long. */
const SHORT_MS = 1500;

async function ask(
  from: Host,
  address: string,
  port = 80,
  sourcePort = SOURCE,
  timeoutMs = REQUEST_TIMEOUT_MS,
): Promise<string> {
  const answer = await from.request('udp', address, port, { sourcePort, timeoutMs });
  return answer.outcome === 'answer' ? answer.reply.host : answer.outcome;
}

const askSoon = (from: Host, address: string, port = 80): Promise<string> =>
  ask(from, address, port, SOURCE, SHORT_MS);

describe.each(['iptables', 'nftables'])(
  'a client that always sends from the same port, in mode %s',
  (mode) => {
    const lab = useLab();
    const daemon = useInLab(async () => {
      const node = lab().host('node1');
      // Flows are forgotten after half a minute otherwise, which a busy machine may need between two questions.
      for (const name of ['nf_conntrack_udp_timeout', 'nf_conntrack_udp_timeout_stream'])
        await node.run(['sh', '-c', `echo 3600 > /proc/sys/net/netfilter/${name}`]);
      const made = await Daemon.create(node, `--proxy-mode=${mode}`);
      await made.write(udp([]));
      await made.start();
      return made;
    });
    const client = (): Host => lab().host('client');
    const answers = async (wanted: string, address = DNS, port = 80): Promise<void> =>
      expect([address, await ask(client(), address, port)]).toEqual([address, wanted]);
    /** The kernel's numbers of the flows that were sent on from an address. */
    const flowsTo = async (address: string): Promise<readonly string[]> => {
      const list = await lab().host('node1').run(['conntrack', '-L', '-p', 'udp', '-d', address, '-o', 'id']);
      return [...list.matchAll(/ id=(\d+)/g)].map(([, id = '']) => id).sort();
    };

    beforeEach(async () => {
      if (!daemon().log.includes('Serving')) return;
      await lab().host('node1').exec(['conntrack', '-F']);
    });

    test('is led to the new endpoint when its own is gone, and others keep theirs', async () => {
      const other = { name: 'other', ip: OTHER, pods: 'bd' };
      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: 'a' }, other]));
      await answers('pod-a');
      await answers('pod-a', NODE, NODE_PORT);
      const sources = Array.from({ length: 12 }, (_, index) => 41_000 + index);
      const others = await Promise.all(sources.map((source) => ask(client(), OTHER, 80, source)));
      const numbers = await flowsTo(OTHER);
      expect(numbers).toHaveLength(sources.length);

      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: 'c' }, other]));
      await answers('pod-c');
      await answers('pod-c', NODE, NODE_PORT);
      expect(await flowsTo(OTHER)).toEqual(numbers);
      expect(await Promise.all(sources.map((source) => ask(client(), OTHER, 80, source)))).toEqual(others);
    });

    test('is refused when nobody is left, and served when somebody is there again', async () => {
      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: 'a' }]));
      await answers('pod-a');
      await answers('pod-a', NODE, NODE_PORT);
      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: '' }]));
      await answers('refused');
      await answers('refused', NODE, NODE_PORT);
      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: 'd' }]));
      await answers('pod-d');
      expect(await ask(client(), DNS)).toBe('pod-d');
      await answers('pod-d', NODE, NODE_PORT);
    });

    test('the same over IPv6', async () => {
      const dns = (pods: string): string =>
        udp([{ name: 'dns', ip: DNS, ip6: DNS_6, nodePort: NODE_PORT, pods }]);
      await daemon().apply(dns('a'));
      await answers('pod-a', DNS_6);
      await answers('pod-a', NODE_6, NODE_PORT);
      await daemon().apply(dns('c'));
      await answers('pod-c', DNS_6);
      await answers('pod-c', NODE_6, NODE_PORT);
      await daemon().apply(dns(''));
      await answers('refused', DNS_6);
      await answers('refused', NODE_6, NODE_PORT);
      expect(await ask(client(), DNS_6)).toBe('refused');
    });

    test('loses its flow to an endpoint that is ready but no longer serves', async () => {
      await daemon().apply(udp([{ name: 'dns', ip: DNS, pods: 'a' }]));
      await answers('pod-a');
      const before = await flowsTo(DNS);
      expect(before).toHaveLength(1);
      const published = udp([{ name: 'dns', ip: DNS, pods: 'ac' }]).replace(
        '{ready: true}',
        '{ready: true, serving: false}',
      );
      await daemon().apply(published);
      expect((await flowsTo(DNS)).filter((flow) => before.includes(flow))).toEqual([]);
    });

    test('is no longer answered by a pod of a service that is deleted', async () => {
      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: 'a' }]));
      await answers('pod-a');
      await answers('pod-a', NODE, NODE_PORT);
      await daemon().apply(udp([]));
      await answers('refused', NODE, NODE_PORT);
      expect(await askSoon(client(), DNS)).not.toMatch(/^pod/);
    });

    test('is served by a service that starts while it is sending already', async () => {
      expect(await ask(client(), NODE, NODE_PORT)).toBe('refused');
      expect(await askSoon(client(), DNS)).not.toMatch(/^pod/);
      expect(await flowsTo(NODE)).toHaveLength(1);
      await daemon().apply(udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods: 'b' }]));
      await answers('pod-b', NODE, NODE_PORT);
      await answers('pod-b');
      await daemon().apply(udp([]));
      await answers('refused', NODE, NODE_PORT);
    });

    test('keeps its endpoint over a restart; one whose endpoint went meanwhile gets another', async () => {
      const services = (pods: string): string => udp([{ name: 'dns', ip: DNS, nodePort: NODE_PORT, pods }]);
      await daemon().apply(services('ac'));
      const sources = Array.from({ length: 24 }, (_, index) => 42_000 + index);
      const everybody = (): Promise<readonly string[]> =>
        Promise.all(
          sources.flatMap((source) => [
            ask(client(), DNS, 80, source),
            ask(client(), NODE, NODE_PORT, source + 1000),
          ]),
        );
      const before = await everybody();
      expect([...new Set(before)].sort()).toEqual(['pod-a', 'pod-c']);
      const numbers = [await flowsTo(DNS), await flowsTo(NODE)];

      await daemon().end('SIGTERM');
      await daemon().start();
      for (let round = 0; round < 3; round++) expect(await everybody()).toEqual(before);
      expect([await flowsTo(DNS), await flowsTo(NODE)]).toEqual(numbers);

      await daemon().end('SIGTERM');
      await daemon().write(services('cd'));
      await daemon().start();
      const now = await everybody();
      for (const [index, host] of now.entries())
        expect(host).toMatch(before[index] === 'pod-c' ? /^pod-c$/ : /^pod-[cd]$/);
    });

    test('what was done is counted', async () => {
      const text = await lab().host('node1').run(['curl', '-s', 'http://127.0.0.1:10249/metrics']);
      expect(text).toMatch(/kubeproxy_conntrack_reconciler_deleted_entries_total\{ip_family="IPv4"\} [1-9]/);
    });
  },
);
