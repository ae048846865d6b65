/**
 * Clients that send from one port for ever, as resolvers and telemetry do. The kernel keeps sending what they send to
 * where their first packet went, unless somebody makes it forget: here both conntrack and IPVS remember.
 */
import type { Host } from '../../../../lab/host.ts';
import type { Transport } from '../../../../lab/protocol.ts';
import { manifests, type ServiceWords } from '../../../e2e/cluster.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';
import { answerers, asked, sessionTo, whoAnswered } from '../../daemon/traffic.ts';

const DNS = '10.96.1.1';
const DNS_6 = 'fd00:96::1:1';
const OTHER = '10.96.1.2';
const NODE = '192.168.100.2';
const NODE_PORT = 30_053;
const SOURCE = 40_001;
const SOON_MS = 1000;

type Datagrams = Exclude<Transport, 'tcp'>;

export const FLOWS = onStage('flows', {
  'UDP: a client is led to the new endpoint when its own is gone, and others keep theirs': (stage) =>
    endpointGone(stage, 'udp'),
  'SCTP: a client is led to the new endpoint when its own is gone, and others keep theirs': (stage) =>
    endpointGone(stage, 'sctp'),
  'UDP: a client is refused when nobody is left, and served when somebody is there again': (stage) =>
    scaledToZero(stage, 'udp', DNS),
  'SCTP: a client is refused when nobody is left, and served when somebody is there again': (stage) =>
    scaledToZero(stage, 'sctp', DNS),
  'UDP over IPv6: a client is refused when nobody is left, and served when somebody is there again': (
    stage,
  ) => scaledToZero(stage, 'udp', DNS_6),

  'UDP: no pod of a deleted service answers, nor one that has its address afterwards for the old one': async (
    stage,
  ) => {
    const { client } = stage;
    await serve(stage, 'udp', [dns('a')]);
    await becomes(() => askSoon(client, 'udp', DNS), 'pod-a');
    await becomes(() => askSoon(client, 'udp', NODE, NODE_PORT), 'pod-a');
    await serve(stage, 'udp', []);
    await becomes(() => askSoon(client, 'udp', NODE, NODE_PORT), 'refused');
    same((await askSoon(client, 'udp', DNS)).startsWith('pod'), false);
    await serve(stage, 'udp', [{ ...dns('d'), name: 'successor' }]);
    await becomes(() => askSoon(client, 'udp', DNS), 'pod-d');
    await becomes(() => askSoon(client, 'udp', NODE, NODE_PORT), 'pod-d');
  },

  'UDP: a client that is sending already is served when its service starts': async (stage) => {
    const { client } = stage;
    await serve(stage, 'udp', []);
    await becomes(() => askSoon(client, 'udp', NODE, NODE_PORT), 'refused');
    same((await askSoon(client, 'udp', DNS)).startsWith('pod'), false);
    await serve(stage, 'udp', [dns('b')]);
    await becomes(() => askSoon(client, 'udp', NODE, NODE_PORT), 'pod-b');
    await becomes(() => askSoon(client, 'udp', DNS), 'pod-b');
  },

  'TCP: connections are left alone when datagrams of the same service are not': async (stage) => {
    const both = (pods: string): string =>
      `${udp([dns(pods)])}---\n${manifests([{ name: 'web', ip: DNS, pods }])}`;
    await stage.serve(both('a'));
    await becomes(() => answerers(stage.client, DNS), 'pod-a');
    await becomes(() => askSoon(stage.client, 'udp', DNS), 'pod-a');
    const session = await sessionTo('pod-a', stage.client, DNS);
    await stage.serve(both('c'));
    await becomes(() => askSoon(stage.client, 'udp', DNS), 'pod-c');
    same(await asked(session), 'pod-a');
    await session.close();
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

async function endpointGone(stage: Stage, protocol: Datagrams): Promise<void> {
  const { client } = stage;
  const other = { name: 'other', ip: OTHER, pods: 'bd' };
  await serve(stage, protocol, [dns('a'), other]);
  await becomes(() => askSoon(client, protocol, DNS), 'pod-a');
  await becomes(() => askSoon(client, protocol, NODE, NODE_PORT), 'pod-a');
  const sources = Array.from({ length: 6 }, (_, index) => 41_000 + index);
  const askOthers = (): Promise<readonly string[]> =>
    Promise.all(sources.map((source) => ask(client, protocol, OTHER, 80, source)));
  await becomes(() => answerers(client, OTHER, 80, protocol), 'pod-b pod-d');
  const others = await askOthers();
  const numbers = await flowsFrom(stage, protocol, sources);
  same(numbers.length, sources.length);
  await serve(stage, protocol, [dns('c'), other]);
  await becomes(() => askSoon(client, protocol, DNS), 'pod-c');
  await becomes(() => askSoon(client, protocol, NODE, NODE_PORT), 'pod-c');
  // Deleted and not drained: there is no end of theirs that could be waited for.
  const name = `${protocol.toUpperCase()} ${DNS}:80`;
  await becomes(() => stage.server(name), `${name} rr -> 10.244.2.11:8080`);
  same(await flowsFrom(stage, protocol, sources), numbers);
  if (protocol === 'udp') same(await askOthers(), others);
}

async function scaledToZero(stage: Stage, protocol: Datagrams, address: string): Promise<void> {
  const { client } = stage;
  await serve(stage, protocol, [dns('a')]);
  await becomes(() => askSoon(client, protocol, address), 'pod-a');
  await becomes(() => askSoon(client, protocol, NODE, NODE_PORT), 'pod-a');
  await serve(stage, protocol, [dns('')]);
  await becomes(() => askSoon(client, protocol, address), 'refused');
  await becomes(() => askSoon(client, protocol, NODE, NODE_PORT), 'refused');
  await serve(stage, protocol, [dns('d')]);
  await becomes(() => askSoon(client, protocol, address), 'pod-d');
  await becomes(() => askSoon(client, protocol, NODE, NODE_PORT), 'pod-d');
}

function dns(pods: string): ServiceWords {
  return { name: 'dns', ip: DNS, ip6: DNS_6, nodePort: NODE_PORT, pods };
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
  await stage.serve(udp(services).replaceAll('protocol: UDP', `protocol: ${protocol.toUpperCase()}`));
}

function udp(services: readonly ServiceWords[]): string {
  return manifests(services).replaceAll('protocol: TCP', 'protocol: UDP');
}

async function ask(
  from: Host,
  protocol: Datagrams,
  address: string,
  port = 80,
  sourcePort = SOURCE,
  timeoutMs = 10_000,
): Promise<string> {
  // An SCTP socket without an address of its own tells its peer all that the host has.
  const source = from.addresses[address.includes(':') ? 'IPv6' : 'IPv4'][0];
  const named = protocol === 'sctp' && source !== undefined ? { source } : {};
  return whoAnswered(await from.request(protocol, address, port, { sourcePort, timeoutMs, ...named }));
}

/** For who asks again, or expects silence: while rules are not there yet, nobody answers. */
function askSoon(from: Host, protocol: Datagrams, address: string, port = 80): Promise<string> {
  return ask(from, protocol, address, port, SOURCE, SOON_MS);
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
