/** The local API of a running daemon: every path, who may ask, and what it survives. */
import { readFileSync, statSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Status } from '../../src/explain/status.ts';
import type {
  ChangeRecord,
  EndpointRow,
  PacketExplanation,
  ServiceExplanation,
  ServiceObjects,
  ServiceRow,
  WatchEvent,
} from '../../src/explain/types.ts';
import type { SnapshotLine } from '../../src/explain/snapshot.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { ask, askFor, watchEvents } from './support/ask.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const API = '10.96.1.1';
const api = (pods: string): ServiceWords => ({ name: 'api', ip: API, nodePort: 30_080, pods });
const WEB: ServiceWords = { name: 'web', ip: '10.96.1.2', ip6: 'fd00:96::2', pods: 'b' };
const HEADLESS = `apiVersion: v1
kind: Service
metadata: {name: headless, namespace: shop}
spec: {clusterIP: None, ports: [{port: 80}]}
`;

/** Before our rules have a word: in the hook forward, for every pod. */
const FOREIGN_DROP = {
  nftables: {
    add: `nft 'add table ip foreign; add chain ip foreign f { type filter hook forward priority -5; }; add rule ip foreign f ip daddr 10.244.0.0/16 drop'`,
    remove: 'nft delete table ip foreign',
  },
  iptables: {
    add: 'iptables-nft -I FORWARD -d 10.244.0.0/16 -j DROP',
    remove: 'iptables-nft -D FORWARD -d 10.244.0.0/16 -j DROP',
  },
};

const SERVICES_201 = Array.from({ length: 201 }, (_, index) => `service=shop/s${index}`).join('&');

/** What is asked, and a part of the answer. */
const REFUSED: readonly (readonly [path: string, status: number, reason: string])[] = [
  ['/v2/services', 404, 'not-found'],
  ['/v1/explain/shop', 404, 'not-found'],
  ['/v1/explain/shop/', 404, 'not-found'],
  ['/v1/explain/shop/web/x', 404, 'not-found'],
  ['/v1/doctor', 404, 'Run junction doctor on the node.'],
  ['/v1/nodes', 404, 'this page is about one node'],
  ['/v1/explain/shop/web?prot=80', 400, 'there is no parameter \\"prot\\" here'],
  [`/v1/explain/shop/web?port=${'8'.repeat(2000)}`, 400, 'port is longer than 1024 characters'],
  ['/v1/explain/shop/web?kernel=all', 400, 'kernel must be none'],
  ['/v1/explain/Shop/web', 400, 'this is not the name of a Service'],
  ['/v1/explain/shop/wep', 400, 'did you mean shop/web?'],
  ['/v1/objects/shop/wep', 400, 'did you mean shop/web?'],
  [`/v1/services?${SERVICES_201}`, 400, '201 services are asked for, of at most 200'],
  ['/v1/services?service=a/b&format=table', 400, 'service goes with no other parameter'],
  ['/v1/services?format=yaml', 400, 'format must be json or table'],
  ['/v1/names?kind=nodes&endpoint=10.', 400, 'endpoint'],
  ['/v1/events?kind=syncs', 400, 'kind must be one of change, sync, foreign'],
  ['/v1/explain?from=node', 400, 'the parameter \\"to\\" is missing'],
  [`/v1/explain?from=nobody&to=${API}:80`, 400, '"parameter":"from"'],
  [`/v1/explain?from=pod/shop/none&to=${API}:80`, 400, '"parameter":"from"'],
  [`/v1/explain?from=fd00:244:1::11&to=${API}:80`, 400, '"parameter":"from"'],
  [`/v1/explain?from=node&to=${API}`, 400, '"parameter":"to"'],
  ['/v1/explain?from=node&to=svc/shop/none', 400, '"parameter":"to"'],
  ['/v1/explain?from=node&to=svc/shop/web:81', 400, '"parameter":"to"'],
  ['/v1/status?wait=soon', 400, 'wait must be applied'],
  ['/v1/status?timeout=5s', 400, 'timeout goes with wait=applied'],
  ['/v1/status?wait=applied&timeout=5', 400, 'timeout must be a duration'],
  ['/v1/status?wait=applied&timeout=-1s', 400, 'more than 0'],
  ['/v1/status?wait=applied&timeout=11m', 400, 'at most 10m'],
  ['/v1/status?wait=applied&service=shop/web/x', 400, 'service must be NAMESPACE/NAME'],
  ['/v1/status?wait=applied&resourceVersion=7', 400, 'resourceVersion goes with service'],
  ['/v1/status?wait=applied&service=shop/web&resourceVersion=new', 400, 'must be a number'],
];

const MODES = [
  ['nftables', '--proxy-mode=nftables'],
  ['iptables', '--iptables-variant=nft'],
] as const;

describe.each(MODES)('a running daemon in %s mode', (mode, ...flags) => {
  const lab = useLab();
  const running = useInLab(async () => {
    const daemon = await Daemon.create(lab().host('node1'), ...flags);
    await daemon.write(`${manifests([api('ac'), WEB])}---\n${HEADLESS}`);
    await daemon.start();
    return daemon;
  });
  const socket = (): string => running().socket;
  const answer = <T>(path: string): Promise<T> => askFor<T>(socket(), path);
  const write = (...services: readonly ServiceWords[]): Promise<void> =>
    running().write(`${manifests(services)}---\n${HEADLESS}`);

  test('says how it is', async () => {
    const status = await answer<Status>('/v1/status');
    expect(status).toMatchObject({ mode, node: 'node1', findings: [], leftOut: [] });
    expect(status.source).toMatchObject({ kind: 'manifests', paths: [running().manifests], problems: [] });
    const [ipv4, ipv6] = status.families;
    expect(ipv4).toMatchObject({ isServed: true, services: 2, servicePorts: 2, endpoints: 3, refused: [] });
    expect(ipv6).toMatchObject({ isServed: true, services: 1, servicePorts: 1, endpoints: 1 });
    expect(ipv4?.lastSync?.ms).toBeGreaterThan(0);
    expect(status.conntrack?.max).toBeGreaterThan(0);
    expect(running().log.includes('nodePortAddresses is unset; NodePort connections will be')).toBe(
      mode === 'iptables',
    );
    expect(status.networkNamespace).toMatch(/^net:\[\d+\]$/);
  });

  test('lists services and endpoints', async () => {
    const rows = await answer<readonly ServiceRow[]>('/v1/services?namespace=shop');
    expect(rows.map(({ service, state }) => `${service} ${state}`).sort()).toEqual([
      'shop/api ok',
      'shop/web ok',
    ]);
    expect(rows.find(({ service }) => service === 'shop/web')?.clusterIPs).toEqual([
      '10.96.1.2',
      'fd00:96::2',
    ]);
    expect(await answer('/v1/services?namespace=other')).toEqual([]);
    const endpoints = await answer<readonly EndpointRow[]>('/v1/endpoints/shop/api');
    expect(endpoints.map(({ address, isLocal }) => [address, isLocal])).toEqual([
      ['10.244.1.11:8080', true],
      ['10.244.2.11:8080', false],
    ]);
  });

  test('explains a packet, by the plan and by the rules in the kernel', async () => {
    const [packet] = await answer<readonly PacketExplanation[]>('/v1/explain?from=outside&to=svc/shop/api');
    expect(packet).toMatchObject({ verdict: 'forwarded', mode, frontend: { service: 'shop/api' } });
    expect(packet?.kernel).toMatchObject({ asPlanned: true, differences: [] });
    const [none] = await answer<readonly PacketExplanation[]>('/v1/explain?from=node&to=10.96.99.99:80');
    expect(none?.verdict).toBe('passed');
    for (const [query, isWalked] of [
      ['', true],
      ['?kernel=none', false],
    ] as const) {
      const { ports } = await answer<ServiceExplanation>(`/v1/explain/shop/web${query}`);
      const packets = ports.flatMap((port) => port.packets);
      expect(new Set(packets.map(({ kernel }) => kernel !== undefined))).toEqual(new Set([isWalked]));
    }
  });

  test('says why a Service is not served', async () => {
    const { findings } = await answer<ServiceExplanation>('/v1/explain/shop/headless');
    expect(findings[0]?.code).toBe('headless');
    expect(findings[0]?.reference?.where ?? findings[0]?.text).toBeDefined();
  });

  test.each(REFUSED)('%s is refused: %i %s', async (path, status, reason) => {
    const refused = await ask(socket(), path);
    expect(refused).toEqual({ status, text: expect.stringContaining(reason) });
    expect(JSON.parse(refused.text)).toMatchObject({ error: { code: expect.any(String) } });
  });

  test.each([
    [{ method: 'POST' }, 405],
    [{ method: 'DELETE' }, 405],
    [{ headers: { 'content-length': '5' } }, 413],
    [{ headers: { 'transfer-encoding': 'chunked' } }, 413],
  ])('changes nothing and takes no body: %o', async (more, status) => {
    expect((await ask(socket(), '/v1/services', more)).status).toBe(status);
  });

  test('hands out a snapshot and names', async () => {
    const { text } = await ask(socket(), '/v1/snapshot');
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as SnapshotLine);
    expect(lines[0]).toMatchObject({ kind: 'header', node: 'node1', mode });
    const kinds = lines.flatMap((line) => (line.kind === 'object' ? [line.object.kind] : []));
    expect(kinds.sort()).toEqual(['EndpointSlice', 'EndpointSlice', 'EndpointSlice', 'Service', 'Service']);
    expect(await answer('/v1/names?kind=services&prefix=shop/w')).toEqual(['shop/web']);
    expect(await answer('/v1/names?kind=nodes')).toEqual(['node1', 'node2']);
    expect(await answer('/v1/names?kind=namespaces')).toEqual(['shop']);
  });

  test('names what a service is made from, and where it is', async () => {
    const { service, endpointSlices, fields } = await answer<ServiceObjects>('/v1/objects/shop/api');
    expect(service).toMatchObject({ kind: 'Service', metadata: { namespace: 'shop', name: 'api' } });
    expect(endpointSlices).toHaveLength(1);
    const ip = fields.find(({ field }) => field === 'spec.clusterIP');
    expect(ip).toMatchObject({ value: API, where: expect.stringMatching(/:\d+$/) });
    const [file = '', line = ''] = ip?.where?.split(/:(?=\d+$)/) ?? [];
    const [object] = readFileSync(file, 'utf8')
      .split('\n')
      .slice(Number(line) - 1)
      .join('\n')
      .split('---');
    expect(object).toContain(API);
  });

  test('finds services by name and by endpoint', async () => {
    const rows = await answer<readonly ServiceRow[]>('/v1/services?service=shop/web&service=shop/none');
    expect(rows.map(({ service }) => service)).toEqual(['shop/web']);
    expect(await answer('/v1/names?kind=services&endpoint=10.244.2.')).toEqual(['shop/api']);
    expect(await answer('/v1/names?kind=services&endpoint=10.244.')).toEqual(['shop/api', 'shop/web']);
    expect(await answer('/v1/names?kind=services&endpoint=fd00:244:')).toEqual(['shop/web']);
    expect(await answer('/v1/names?kind=services&endpoint=10.96.')).toEqual([]);
    expect(await answer('/v1/names?kind=services&prefix=shop/w&endpoint=10.')).toEqual(['shop/web']);
    expect(await answer('/v1/names?kind=endpoints&namespace=sho')).toEqual([]);
  });

  test('streams a change as it goes through, and remembers it', async () => {
    const watch = await watchEvents(socket());
    const before = Date.now();
    await write(api('acd'), WEB);
    const changes = (): readonly WatchEvent[] => watch.events.filter(({ kind }) => kind === 'change');
    await eventually('the change', () => changes().length > 0);
    const [change] = changes();
    expect(change).toMatchObject({
      service: 'shop/api',
      effects: ['shop/api:http/TCP: endpoint 10.244.2.12:8080 added to cluster'],
    });
    expect(watch.events.some(({ kind }) => kind === 'sync')).toBe(true);
    watch.close();
    const past = await answer<readonly WatchEvent[]>('/v1/events');
    expect(past).toContainEqual(change);
    const syncs = await answer<readonly WatchEvent[]>('/v1/events?kind=sync');
    expect(syncs[0]).toMatchObject({ kind: 'sync', sync: 'full', cause: 'start' });
    const last = syncs.at(-1);
    if (last?.kind !== 'sync') throw new Error('no sync');
    const { at, ms, planMs = Number.NaN, writeMs = Number.NaN } = last;
    expect(planMs + writeMs).toBeCloseTo(ms, 1);
    expect(before).toBeLessThanOrEqual((last.seenAt ?? 0) + 1);
    expect(last.seenAt).toBeLessThanOrEqual(at);

    const [record] = await answer<readonly ChangeRecord[]>('/v1/history?service=shop/api');
    const { seenAt = 0, plannedAt = 0, committedAt = 0 } = record ?? {};
    expect(before).toBeLessThanOrEqual(seenAt + 1);
    expect(seenAt).toBeLessThanOrEqual(plannedAt);
    expect(plannedAt).toBeLessThanOrEqual(committedAt);
    expect(await answer('/v1/history?service=shop/web')).toEqual([]);
  });

  test('shows a rule of another program on the way of a packet', async () => {
    const node = lab().host('node1');
    await node.run(['sh', '-c', FOREIGN_DROP[mode].add]);
    try {
      const [packet] = await answer<readonly PacketExplanation[]>('/v1/explain?from=outside&to=svc/shop/api');
      expect(packet?.kernel?.asPlanned).toBe(false);
      expect(packet?.kernel?.differences.join()).toMatch(/dropped by .*another program's rule/);
    } finally {
      await node.run(['sh', '-c', FOREIGN_DROP[mode].remove]);
    }
  });

  test('answers nobody else', async () => {
    const curl = `curl -s --unix-socket ${socket()} -o /dev/null -w '%{http_code}' http://x/v1/status || true`;
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];
    const asked = (before: readonly string[]): Promise<string> =>
      lab()
        .host('node1')
        .run([...before, 'sh', '-c', curl]);
    expect(statSync(socket()).mode & 0o777).toBe(0o600);
    expect([await asked([]), await asked(nobody)]).toEqual(['200', '000']);
  });

  test('survives a thousand idle clients, garbage and slow readers', async () => {
    const sockets: Socket[] = [];
    const connect = (): Promise<Socket> =>
      new Promise((resolve) => {
        const client = createConnection({ path: socket() }, () => resolve(client));
        // EAGAIN: as many wait to be let in as may wait.
        client.once('error', () => resolve(connect()));
        sockets.push(client);
      });
    try {
      for (let count = 0; count < 1000; count++) await connect();
      for (const bytes of ['\0\x01\x02', 'GET', `GET /v1/status HTTP/1.1\r\nX: ${'y'.repeat(9000)}`]) {
        const client = await connect();
        client.on('error', () => undefined).write(bytes);
      }
      const reader = await connect();
      reader.on('error', () => undefined).pause();
      reader.write('GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n');
      for (const pods of ['a', 'b', 'c', 'd', 'ac']) await write(api(pods), WEB);
      const rows = await answer<readonly ServiceRow[]>('/v1/services');
      expect(rows).toHaveLength(2);
    } finally {
      for (const client of sockets) client.on('error', () => undefined).destroy();
    }
    await eventually(
      'the last change',
      async () => (await answer<readonly EndpointRow[]>('/v1/endpoints/shop/api')).length === 2,
    );
  });

  test('of very many events the last thousand are kept, and who reads too slowly learns what is lost', async () => {
    let text = '';
    const open = (): Socket => {
      const opened = createConnection({ path: socket() }).setEncoding('utf8');
      opened.on('error', () => undefined).on('data', (chunk: string) => void (text += chunk));
      opened.write('GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n');
      return opened;
    };
    let slow = open();
    const many = Array.from({ length: 1200 }, (_, index) => ({
      name: `many-${index}`,
      ip: `10.96.${10 + (index >> 8)}.${index & 255}`,
      pods: '',
    }));
    let pods = 'a';
    await eventually('the stream', async () => {
      // There may still be as many connections as the proxy takes.
      if (slow.destroyed) slow = open();
      await write(api((pods = pods === 'a' ? 'c' : 'a')), WEB);
      return text.includes('shop/api');
    });
    slow.pause();
    // However many of them the buffers of the socket take.
    await running().apply(manifests(many));
    await running().apply(manifests([api('ac')]));
    await running().apply(
      manifests(many.map((each) => ({ ...each, extra: '  externalIPs: [203.0.113.9]' }))),
    );
    await running().apply(manifests([api('ac')]));
    slow.resume();
    await eventually(
      () => `what is lost, after ${text.length} characters: ${text.slice(-500)}`,
      () => /{"kind":"lost","at":\d+,"events":\d+}/.test(text),
    );
    slow.destroy();
    expect(await answer('/v1/events')).toHaveLength(1000);
    expect(running().log.split('Another Service has this address already')).toHaveLength(1 + 20);
    expect(running().log).toMatch(/More service ports want addresses .* servicePorts=1179/);
  });
});
