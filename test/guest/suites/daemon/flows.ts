/**
 * Clients that send from one port for ever, as resolvers and telemetry do. The kernel keeps sending what they send to
 * where their first packet went, unless somebody makes it forget: here both conntrack and IPVS remember.
 */
import type { Host } from '../../../../lab/host.ts';
import type { Transport } from '../../../../lab/protocol.ts';
import { manifests, type ServiceWords } from '../../../e2e/cluster.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';
import { answerers, whoAnswered } from '../../daemon/traffic.ts';

const DNS = '10.96.1.1';
const OTHER = '10.96.1.2';
const NODE = '192.168.100.2';
const NODE_PORT = 30_053;
const SOURCE = 40_001;
const SOON_MS = 1000;

type Datagrams = Exclude<Transport, 'tcp'>;

export const FLOWS = onStage('flows', {
  'UDP: a client is led to the new endpoint when its own is gone, and others keep theirs': async (stage) => {
    const { client } = stage;
    const other = { name: 'other', ip: OTHER, pods: 'bd' };
    await serve(stage, 'udp', [dns('a'), other]);
    await answersAre(stage, 'udp', 'pod-a');
    const sources = Array.from({ length: 6 }, (_, index) => 41_000 + index);
    const askOthers = (): Promise<readonly string[]> =>
      Promise.all(sources.map((source) => ask(client, 'udp', OTHER, 80, source)));
    await becomes(() => answerers(client, OTHER, 80, 'udp'), 'pod-b pod-d');
    const others = await askOthers();
    const numbers = await flowsFrom(stage, 'udp', sources);
    same(numbers.length, sources.length);
    await serve(stage, 'udp', [dns('c'), other]);
    await answersAre(stage, 'udp', 'pod-c');
    // Deleted and not drained: there is no end of theirs that could be waited for.
    await becomes(() => stage.server(`UDP ${DNS}:80`), `UDP ${DNS}:80 rr -> 10.244.2.11:8080`);
    same(await flowsFrom(stage, 'udp', sources), numbers);
    same(await askOthers(), others);
  },

  'SCTP: a client is refused when nobody is left, and served when somebody is there again': async (stage) => {
    for (const [pods, answer] of [
      ['a', 'pod-a'],
      ['', 'refused'],
      ['d', 'pod-d'],
    ] as const) {
      await serve(stage, 'sctp', [dns(pods)]);
      await answersAre(stage, 'sctp', answer);
    }
  },

  'UDP: every client keeps its endpoint over a restart': async (stage) => {
    await serve(stage, 'udp', [dns('ac')]);
    await becomes(() => answerers(stage.client, DNS, 80, 'udp'), 'pod-a pod-c');
    const sources = Array.from({ length: 8 }, (_, index) => 42_000 + index);
    const answers = (): Promise<readonly string[]> =>
      Promise.all(
        sources.flatMap((source) => [
          ask(stage.client, 'udp', DNS, 80, source),
          ask(stage.client, 'udp', NODE, NODE_PORT, source + 1000),
        ]),
      );
    const before = await answers();
    same([...new Set(before)].sort(), ['pod-a', 'pod-c']);
    const numbers = await flowsFrom(stage, 'udp', sources);
    await stage.daemon.end('SIGTERM');
    await serve(stage, 'udp', [dns('ac')]);
    same(await answers(), before);
    same(await flowsFrom(stage, 'udp', sources), numbers);
  },
});

/** At both kinds of address. While rules are not there yet, nobody answers. */
async function answersAre({ client }: Stage, protocol: Datagrams, expected: string): Promise<void> {
  await becomes(() => ask(client, protocol, DNS, 80, SOURCE, SOON_MS), expected);
  await becomes(() => ask(client, protocol, NODE, NODE_PORT, SOURCE, SOON_MS), expected);
}

function dns(pods: string): ServiceWords {
  return { name: 'dns', ip: DNS, nodePort: NODE_PORT, pods };
}

/** The kernel deletes a flow after 10 or 30 s, which a busy machine may need between two questions. */
const LONG_TIMEOUTS = [
  'nf_conntrack_udp_timeout',
  'nf_conntrack_udp_timeout_stream',
  'nf_conntrack_sctp_timeout_closed',
];

async function serve(stage: Stage, protocol: Datagrams, services: readonly ServiceWords[]): Promise<void> {
  for (const name of LONG_TIMEOUTS)
    await stage.node.run(['sh', '-c', `echo 3600 > /proc/sys/net/netfilter/${name}`]);
  await stage.serve(manifests(services).replaceAll('protocol: TCP', `protocol: ${protocol.toUpperCase()}`));
}

async function ask(
  from: Host,
  protocol: Datagrams,
  address: string,
  port: number,
  sourcePort: number,
  timeoutMs = 10_000,
): Promise<string> {
  // An SCTP socket without an address of its own tells its peer all that the host has.
  const source = from.addresses[address.includes(':') ? 'IPv6' : 'IPv4'][0];
  const named = protocol === 'sctp' && source !== undefined ? { source } : {};
  return whoAnswered(await from.request(protocol, address, port, { sourcePort, timeoutMs, ...named }));
}

/** The kernel's numbers of the flows that the client has begun from these ports. */
async function flowsFrom(
  stage: Stage,
  protocol: Datagrams,
  sources: readonly number[],
): Promise<readonly string[]> {
  const list = await stage.node.run(['conntrack', '-L', '-p', protocol, '-s', '192.0.2.10', '-o', 'id']);
  const lines = list
    .split('\n')
    .filter((line) => sources.some((source) => line.includes(` sport=${source} dport=`)));
  return lines.flatMap((line) => / id=(\d+)/.exec(line)?.[1] ?? []).sort();
}
