/** Connections by service and by endpoint, as the nftables mode counts them, held against connections that were made. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Transport } from '../../lab/protocol.ts';
import { type HostName, NODE_PORT_OF_HOST_NETWORK } from '../../lab/topology.ts';
import { useLab } from '../lab/requireLab.ts';
import { parseExposition } from '../telemetry/metrics/parse.ts';
import { Daemon, eventually } from './daemon.ts';
import { fetchFrom } from './support/fetch.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const NODE = '192.168.100.2';
const NODE_6 = 'fd00:100::2';
const CLIENT_IP = '  sessionAffinity: ClientIP';
/** By service and protocol, or with the endpoint too: how many connections. */
type Counts = Map<string, number>;

interface Dialled {
  readonly times: number;
  readonly address: string;
  readonly port?: number;
  readonly transport?: Transport;
  readonly from?: readonly HostName[];
}

function words(name: string, place: number, more: Partial<ServiceWords> = {}): ServiceWords {
  const addresses = { ip: `10.96.${place}.1`, ip6: `fd00:96:${place}::1`, nodePort: 30_080 + place };
  return { name, ...addresses, pods: 'abc', extra: CLIENT_IP, ...more };
}

const PLAIN = { extra: '' };
const STICKY = words('sticky', 2);
const TWO_PORTS = manifests([words('double', 3)])
  .replace(
    'ports: [{name: http',
    'ports: [{name: other, port: 81, targetPort: 8080, protocol: TCP}, {name: http',
  )
  .replaceAll(
    'ports: [{name: http, port: 8080',
    'ports: [{name: other, port: 8080, protocol: TCP}, {name: http, port: 8080',
  );
const DATAGRAMS = manifests([words('datagrams', 4)]).replaceAll('protocol: TCP', 'protocol: UDP');
/** The node itself is the endpoint. */
const HOST = manifests([words('host', 7, { pods: 'a' })])
  .replaceAll('10.244.1.11', NODE)
  .replaceAll('fd00:244:1::11', NODE_6)
  .replaceAll(' port: 8080', ` port: ${NODE_PORT_OF_HOST_NETWORK}`);
const OTHERS = [TWO_PORTS, DATAGRAMS, HOST, manifests([words('free', 5, PLAIN)])];
const cluster = (...services: readonly ServiceWords[]): string =>
  [...OTHERS, manifests(services)].join('---\n');

const lab = useLab();
const daemon = useInLab(async () => {
  const made = await Daemon.create(lab().host('node1'), '--proxy-mode=nftables', '--nftables-counters');
  await made.write(cluster(words('web', 1, PLAIN), STICKY, words('fickle', 6, PLAIN)));
  await made.start();
  return made;
});
const expected: Counts = new Map();

/** Dials so often, and adds who answered to what is expected. */
async function dial(
  service: string,
  { times, address, port = 80, transport = 'tcp', from = ['client'] }: Dialled,
) {
  const answered = new Set<string>();
  for (const host of from)
    for (let index = 0; index < times; index++) {
      const answer = await lab().host(host).request(transport, address, port);
      if (answer.outcome !== 'answer') throw new Error(`${host} to ${address}: ${answer.outcome}`);
      const { address: ip, port: at } = answer.reply;
      const endpoint = ip.includes(':') ? `[${ip}]:${at}` : `${ip}:${at}`;
      const labels = [ip.includes(':') ? 'IPv6' : 'IPv4', transport.toUpperCase(), `shop/${service}`];
      for (const key of [keyOf(...labels), keyOf(...labels, endpoint)])
        expected.set(key, (expected.get(key) ?? 0) + 1);
      answered.add(endpoint);
    }
  return answered;
}

async function read(): Promise<Counts> {
  const { body } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10249/metrics');
  const counting = /^junction_(?:service|endpoint)_connections_total$/;
  const samples = parseExposition(body).filter(({ name }) => counting.test(name));
  return new Map(
    samples.flatMap((each) =>
      each.samples
        .filter(({ value }) => value > 0) // the others say nothing
        .map(({ labels, value }) => [keyOf(...labels.map(([, text]) => text)), value] as const),
    ),
  );
}

/** The kernel's counters are read every 30 seconds at most. */
async function expectCounted(isMeant: (key: string) => boolean = () => true): Promise<Counts> {
  const print = (counts: Counts): string =>
    [...counts]
      .filter(([key]) => isMeant(key))
      .map((each) => each.join(': '))
      .sort()
      .join('\n');
  let last: Counts = new Map();
  await eventually(
    () => `counted:\n${print(expected)}\nlast:\n${print(last)}`,
    async () => {
      last = await read();
      if (print(last) === print(expected)) return true;
      await sleep(2000);
      return false;
    },
  );
  return last;
}

function keyOf(...labels: readonly string[]): string {
  return [...labels].sort().join(' ');
}

test('are those that were made, at every address, whoever dials, and for the right endpoint', async () => {
  await dial('web:http', { times: 15, address: '10.96.1.1' });
  await dial('web:http', { times: 10, address: NODE, port: 30_081 });
  await dial('web:http', { times: 5, address: 'fd00:96:1::1' });
  await dial('free:http', { times: 11, address: '10.96.5.1' });
  // Of clients that a service remembers: by service where they share endpoints, by port where they share an address.
  const frontends = [
    { address: STICKY.ip },
    { address: 'fd00:96:2::1' },
    { address: NODE, port: 30_082 },
    { address: NODE_6, port: 30_082 },
  ];
  for (const frontend of frontends)
    expect((await dial('sticky:http', { times: 12, ...frontend })).size).toBe(1);
  for (const frontend of frontends.slice(0, 3))
    await dial('sticky:http', { times: 4, from: ['node1', 'pod-a', 'pod-b'], ...frontend });
  await dial('double:http', { times: 5, address: '10.96.3.1' });
  await dial('double:other', { times: 7, address: '10.96.3.1', port: 81 });
  await dial('double:other', { times: 3, address: 'fd00:96:3::1', port: 81 });
  await dial('datagrams:http', { times: 9, address: '10.96.4.1', transport: 'udp' });
  await dial('datagrams:http', { times: 2, address: NODE_6, port: 30_084, transport: 'udp' });
  for (const address of ['10.96.7.1', 'fd00:96:7::1'])
    await dial('host:http', { times: 4, address, from: ['client', 'pod-b', 'node1'] });
  for (const address of ['10.96.6.1', 'fd00:96:6::1']) await dial('fickle:http', { times: 15, address });
  await expectCounted();
});

test('stay so while pools change, and while a service begins to remember and stops', async () => {
  const pools = [words('web', 1, { ...PLAIN, pods: 'abcd' }), { ...STICKY, pods: 'abcd' }];
  for (const more of [{}, PLAIN]) {
    await daemon().apply(cluster(...pools, words('fickle', 6, more)));
    // An endpoint more makes new pools, but takes nobody away.
    await dial('sticky:http', { times: 5, address: STICKY.ip });
    for (const address of ['10.96.6.1', 'fd00:96:6::1']) await dial('fickle:http', { times: 15, address });
    await expectCounted((key) => !key.includes('web'));
  }
});

test('are still known after a restart: what the elements have counted is in the kernel', async () => {
  await daemon().end('SIGKILL');
  await dial('sticky:http', { times: 6, address: NODE_6, port: 30_082 });
  await dial('web:http', { times: 4, address: '10.96.1.1' });
  await daemon().start();
  await dial('sticky:http', { times: 7, address: STICKY.ip });
  // What was counted by elements that are gone went with the process.
  const counts = await expectCounted((key) => key.includes('sticky'));
  expect(counts.get(keyOf('IPv4', 'TCP', 'shop/web:http'))).toBeGreaterThanOrEqual(4);
});
