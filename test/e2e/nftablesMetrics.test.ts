/** Connections by service and by endpoint, as the nftables mode counts them, held against connections that were made. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { parseExposition } from '../metrics/parse.ts';
import { Daemon, eventually } from './daemon.ts';
import { fetchFrom } from './support/fetch.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './world.ts';

const WEB = { name: 'web', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080 };
/** A reading is not repeated sooner. */
const PAUSE_MS = 5200;

describe('counted connections', () => {
  const lab = useLab();
  const daemon = useInLab(async () => {
    const made = await Daemon.create(lab().host('node1'), '--proxy-mode=nftables', '--nftables-counters');
    await made.write(manifests([{ ...WEB, pods: 'ac' }]));
    await made.start();
    return made;
  });

  async function read(name: string): Promise<ReadonlyMap<string, number>> {
    const { body } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10249/metrics');
    const family = parseExposition(body).find((each) => each.name === name);
    return new Map(
      (family?.samples ?? []).map(({ labels, value }) => [
        labels
          .map(([, text]) => text)
          .sort()
          .join(' '),
        value,
      ]),
    );
  }

  /** Dials so often, and counts who answered. */
  async function dial(times: number, address: string, port = 80): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    const client = lab().host('client');
    for (let index = 0; index < times; index++) {
      const answer = await client.request('tcp', address, port);
      if (answer.outcome !== 'answer') throw new Error(`${address}: ${answer.outcome}`);
      const { address: host, port: at } = answer.reply;
      const endpoint = host.includes(':') ? `[${host}]:${at}` : `${host}:${at}`;
      counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
    }
    return counts;
  }

  const keyOf = (family: string, ...more: readonly string[]): string =>
    [family, 'TCP', 'shop/web:http', ...more].sort().join(' ');

  test('are those that were made; and stay so while the pool changes and over a restart', async () => {
    const made = [
      await dial(20, WEB.ip),
      await dial(10, '192.168.100.2', WEB.nodePort),
      await dial(5, WEB.ip6),
    ];
    const [a, c] = ['10.244.1.11:8080', '10.244.2.11:8080'];
    const counted = (endpoint: string): number =>
      made.reduce((sum, each) => sum + (each.get(endpoint) ?? 0), 0);
    const endpoints = await read('junction_endpoint_connections_total');
    for (const endpoint of [a, c])
      expect([endpoint, endpoints.get(keyOf('IPv4', endpoint)) ?? 0]).toEqual([endpoint, counted(endpoint)]);
    const services = await read('junction_service_connections_total');
    expect(services).toEqual(
      new Map([
        [keyOf('IPv4'), 30],
        [keyOf('IPv6'), 5],
      ]),
    );

    await daemon().write(manifests([{ ...WEB, pods: 'acd' }]));
    await eventually('the third endpoint', async () => (await dial(1, WEB.ip)).has('10.244.2.12:8080'));
    await sleep(PAUSE_MS);
    const later = await read('junction_service_connections_total');
    expect(later.get(keyOf('IPv4'))).toBeGreaterThan(30);
    expect(later.get(keyOf('IPv6'))).toBe(5);
    const kept = await read('junction_endpoint_connections_total');
    for (const endpoint of [a, c])
      expect(kept.get(keyOf('IPv4', endpoint))).toBeGreaterThanOrEqual(counted(endpoint));

    await daemon().end('SIGKILL');
    await dial(4, WEB.ip);
    await daemon().start();
    await dial(3, WEB.ip);
    // What the elements have counted is in the kernel; what was counted by elements that are gone went with the process.
    const restarted = await read('junction_service_connections_total');
    expect(restarted.get(keyOf('IPv4'))).toBeGreaterThanOrEqual(7);
  });
});
