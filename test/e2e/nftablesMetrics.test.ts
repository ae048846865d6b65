/** Connections by service and by endpoint, as the nftables mode counts them, held against connections that were made. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Transport } from '../../lab/protocol.ts';
import { type HostName, NODE_PORT_OF_HOST_NETWORK } from '../../lab/topology.ts';
import { useLab } from '../lab/requireLab.ts';
import { parseExposition } from '../telemetry/metrics/parse.ts';
import { Daemon, eventually } from './daemon.ts';
import { fetchFrom } from './support/fetch.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const WEB = { name: 'web', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080 };
const NODE = '192.168.100.2';
const NODE_6 = 'fd00:100::2';
const SERVICES = 'junction_service_connections_total';
const ENDPOINTS = 'junction_endpoint_connections_total';

type Counts = Map<string, number>;

interface Reading {
  readonly services: Counts;
  readonly endpoints: Counts;
}

interface Dialled {
  readonly address: string;
  readonly port?: number;
  readonly transport?: Transport;
}

describe('counted connections', () => {
  const lab = useLab();
  const daemon = useInLab(async () => {
    const made = await Daemon.create(lab().host('node1'), '--proxy-mode=nftables', '--nftables-counters');
    await made.write(manifests([{ ...WEB, pods: 'ac' }]));
    await made.start();
    return made;
  });

  async function read(): Promise<Reading> {
    const { body } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10249/metrics');
    const families = parseExposition(body);
    const counts = (name: string): Counts => {
      const samples = families.find((each) => each.name === name)?.samples ?? [];
      return new Map(samples.map(({ labels, value }) => [keyOf(...labels.map(([, text]) => text)), value]));
    };
    return { services: counts(SERVICES), endpoints: counts(ENDPOINTS) };
  }

  /** The kernel's counters are read every five seconds at most, and less often where that takes long. */
  async function until(what: string, isSo: (reading: Reading) => boolean): Promise<Reading> {
    let last: Reading | undefined;
    await eventually(
      () => `${what}; last: ${print(last)}`,
      async () => {
        last = await read();
        if (isSo(last)) return true;
        await sleep(500);
        return false;
      },
    );
    return last ?? (await read());
  }

  /** Dials so often, and counts who answered. */
  async function dial(times: number, frontend: Dialled, from: HostName = 'client'): Promise<Counts> {
    const { address, port = 80, transport = 'tcp' } = frontend;
    const counts: Counts = new Map();
    for (let index = 0; index < times; index++) {
      const answer = await lab().host(from).request(transport, address, port);
      if (answer.outcome !== 'answer') throw new Error(`${from} to ${address}: ${answer.outcome}`);
      const { address: host, port: at } = answer.reply;
      const endpoint = host.includes(':') ? `[${host}]:${at}` : `${host}:${at}`;
      counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
    }
    return counts;
  }

  const webOf = (family: string, ...more: readonly string[]): string =>
    keyOf(family, 'TCP', 'shop/web:http', ...more);

  /** Series of 0 say nothing. */
  async function expectCounted(expected: ExpectedCounts): Promise<void> {
    const isSo = ({ services, endpoints }: Reading): boolean =>
      isSame(used(services), expected.services) && isSame(used(endpoints), expected.endpoints);
    await until(`counted: ${print(expected)}`, isSo);
  }

  test('are those that were made; and stay so while the pool changes and over a restart', async () => {
    const made = [
      await dial(20, { address: WEB.ip }),
      await dial(10, { address: NODE, port: WEB.nodePort }),
      await dial(5, { address: WEB.ip6 }),
    ];
    const [a, c] = ['10.244.1.11:8080', '10.244.2.11:8080'];
    const counted = (endpoint: string): number =>
      made.reduce((sum, each) => sum + (each.get(endpoint) ?? 0), 0);
    const { services, endpoints } = await read();
    for (const endpoint of [a, c])
      expect([endpoint, endpoints.get(webOf('IPv4', endpoint)) ?? 0]).toEqual([endpoint, counted(endpoint)]);
    expect(services).toEqual(
      new Map([
        [webOf('IPv4'), 30],
        [webOf('IPv6'), 5],
      ]),
    );

    await daemon().apply(manifests([{ ...WEB, pods: 'acd' }]));
    await dial(1, { address: WEB.ip });
    const later = await until('more', (each) => (each.services.get(webOf('IPv4')) ?? 0) > 30);
    expect(later.services.get(webOf('IPv6'))).toBe(5);
    for (const endpoint of [a, c])
      expect(later.endpoints.get(webOf('IPv4', endpoint))).toBeGreaterThanOrEqual(counted(endpoint));

    await daemon().end('SIGKILL');
    await dial(4, { address: WEB.ip });
    await daemon().start();
    await dial(3, { address: WEB.ip });
    // What the elements have counted is in the kernel; what was counted by elements that are gone went with the process.
    const restarted = await read();
    expect(restarted.services.get(webOf('IPv4'))).toBeGreaterThanOrEqual(7);
  });

  describe('of clients that a service remembers', () => {
    const STICKY: ServiceWords = {
      ...WEB,
      name: 'sticky',
      ip: '10.96.2.1',
      ip6: 'fd00:96:2::1',
      pods: 'abc',
      nodePort: 30_090,
      extra: '  sessionAffinity: ClientIP',
    };
    const [PORT, PORT_6] = [
      { address: NODE, port: 30_090 },
      { address: NODE_6, port: 30_090 },
    ];
    const ADDRESS: Dialled = { address: STICKY.ip };
    const ADDRESS_6: Dialled = { address: 'fd00:96:2::1' };

    test('are all counted, at every address, whoever dials, and for the right endpoint', async () => {
      await daemon().apply(manifests([STICKY]));
      const expected = new ExpectedCounts();
      for (const frontend of [ADDRESS, ADDRESS_6, PORT, PORT_6]) {
        const counts = await dial(12, frontend);
        expect([...counts.values()]).toEqual([12]);
        expected.add('shop/sticky:http', counts);
      }
      for (const from of ['node1', 'pod-a', 'pod-b'] as const)
        for (const frontend of [ADDRESS, ADDRESS_6, PORT])
          expected.add('shop/sticky:http', await dial(4, frontend, from));
      await expectCounted(expected);

      // An endpoint more makes new pools, but takes nobody away; nor does a new process.
      await daemon().apply(manifests([{ ...STICKY, pods: 'abcd' }]));
      expected.add('shop/sticky:http', await dial(5, ADDRESS));
      await expectCounted(expected);
      await daemon().end('SIGKILL');
      expected.add('shop/sticky:http', await dial(6, PORT_6));
      await daemon().start();
      expected.add('shop/sticky:http', await dial(7, ADDRESS));
      await expectCounted(expected);
    });

    test('are told apart: by service where they share endpoints, and by port where they share an address', async () => {
      const twoPorts = manifests([
        { ...STICKY, name: 'double', ip: '10.96.3.1', ip6: 'fd00:96:3::1', nodePort: 30_091 },
      ])
        .replace(
          'ports: [{name: http',
          'ports: [{name: other, port: 81, targetPort: 8080, protocol: TCP}, {name: http',
        )
        .replaceAll(
          'ports: [{name: http, port: 8080',
          'ports: [{name: other, port: 8080, protocol: TCP}, {name: http, port: 8080',
        );
      const udp = manifests([
        { ...STICKY, name: 'datagrams', ip: '10.96.4.1', ip6: 'fd00:96:4::1', nodePort: 30_092 },
      ]);
      const free = manifests([{ name: 'free', ip: '10.96.5.1', pods: 'abc' }]);
      await daemon().apply([twoPorts, udp.replaceAll('protocol: TCP', 'protocol: UDP'), free].join('---\n'));
      const expected = new ExpectedCounts();
      expected.add('shop/double:http', await dial(5, { address: '10.96.3.1' }));
      expected.add('shop/double:other', await dial(7, { address: '10.96.3.1', port: 81 }));
      expected.add('shop/double:other', await dial(3, { address: 'fd00:96:3::1', port: 81 }));
      expected.add('shop/datagrams:http', await dial(9, { address: '10.96.4.1', transport: 'udp' }), 'UDP');
      expected.add(
        'shop/datagrams:http',
        await dial(2, { address: NODE_6, port: 30_092, transport: 'udp' }),
        'UDP',
      );
      expected.add('shop/free:http', await dial(11, { address: '10.96.5.1' }));
      await expectCounted(expected);
    });

    test('are counted once where the endpoint is the node itself', async () => {
      const words = { ...STICKY, name: 'host', ip: '10.96.7.1', ip6: 'fd00:96:7::1', nodePort: 30_094 };
      const text = manifests([{ ...words, pods: 'a' }])
        .replaceAll('10.244.1.11', NODE)
        .replaceAll('fd00:244:1::11', NODE_6)
        .replaceAll(' port: 8080', ` port: ${NODE_PORT_OF_HOST_NETWORK}`);
      await daemon().apply(text);
      const expected = new ExpectedCounts();
      for (const from of ['client', 'pod-b', 'node1'] as const)
        for (const address of [words.ip, words.ip6])
          expected.add('shop/host:http', await dial(4, { address }, from));
      await expectCounted(expected);
    });

    test('are counted once whenever it begins to remember, and when it stops', async () => {
      const { extra: _, ...plain } = {
        ...STICKY,
        name: 'fickle',
        ip: '10.96.6.1',
        ip6: 'fd00:96:6::1',
        nodePort: 30_093,
      };
      const expected = new ExpectedCounts();
      for (const words of [
        plain,
        { ...plain, extra: STICKY.extra ?? '' },
        plain,
        { ...plain, extra: STICKY.extra ?? '' },
      ]) {
        await daemon().apply(manifests([words]));
        for (const address of [plain.ip, 'fd00:96:6::1'])
          expected.add('shop/fickle:http', await dial(15, { address }));
        await expectCounted(expected);
      }
    });
  });
});

/** What was made and has to be counted, by the words of the two metrics. */
class ExpectedCounts implements Reading {
  readonly services: Counts = new Map();
  readonly endpoints: Counts = new Map();

  add(servicePort: string, counts: Counts, protocol = 'TCP'): void {
    for (const [endpoint, count] of counts) {
      const words = [endpoint.startsWith('[') ? 'IPv6' : 'IPv4', protocol, servicePort];
      increase(this.services, keyOf(...words), count);
      increase(this.endpoints, keyOf(...words, endpoint), count);
    }
  }
}

function keyOf(...words: readonly string[]): string {
  return [...words].sort().join(' ');
}

function increase(counts: Counts, key: string, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

function isSame(a: Counts, b: Counts): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}

function print(reading: Reading | undefined): string {
  return JSON.stringify([reading?.services, reading?.endpoints].map((each) => [...(each ?? [])]));
}

function used(counts: Counts): Counts {
  return new Map([...counts].filter(([, count]) => count > 0));
}
