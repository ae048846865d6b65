import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readBundle } from '../../src/bundle/read.ts';
import type { SnapshotLine } from '../../src/explain/snapshot.ts';
import type { Status } from '../../src/explain/status.ts';
import {
  endpointSliceToKubernetes,
  nodeToKubernetes,
  serviceToKubernetes,
} from '../../src/model/project/toKubernetes.ts';
import { loadManifests } from '../../src/sources/manifests/source.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { FakeLocalApi } from '../support/fakeLocalApi.ts';
import { junction } from './junction.ts';

let directory = '';
let api: FakeLocalApi;

const PEM = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKeySeed01\n-----END EC PRIVATE KEY-----\n';
const KEY_DATA = Buffer.from(PEM).toString('base64');

const KUBECONFIG = `
apiVersion: v1
kind: Config
current-context: seeded
contexts: [{ name: seeded, context: { cluster: c, user: u } }]
clusters:
- name: c
  cluster: { server: 'https://api.example:6443', proxy-url: 'http://pu:SeedProxyPassword02@proxy.example' }
users:
- name: u
  user: { token: SeedToken03, client-key-data: ${KEY_DATA} }
- name: v
  user: { username: admin, password: SeedPassword04, tokenFile: token }
- name: w
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: get-credentials
      args: [--client-secret=SeedExecArgument05]
      env: [{ name: X, value: SeedExecEnv06 }]
`;

const SEEDS = [
  'MHcCAQEEIKeySeed01',
  KEY_DATA.slice(10, 60),
  'SeedProxyPassword02',
  'SeedToken03',
  'SeedPassword04',
  'SeedExecArgument05',
  'SeedExecEnv06',
  'SeedTokenFile07',
  'SeedEnvironment08',
  'SeedEnvProxy09',
  'SeedAnnotation10',
  'SeedBearer11',
  'SeedUrlPassword12',
  'SeedLabel13',
];

async function snapshot(): Promise<readonly SnapshotLine[]> {
  const { services, slices, nodes } = await loadManifests(['examples']);
  const seeded = {
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":"SeedAnnotation10"}' },
    labels: { owner: 'SeedLabel13' },
  };
  return [
    {
      kind: 'header',
      format: 1,
      version: '0.1.0',
      node: 'node1',
      mode: 'nftables',
      takenAt: Date.parse('2026-11-16T14:03:12Z'),
      config: {
        apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
        kind: 'KubeProxyConfiguration',
        mode: 'nftables',
        clusterCIDR: '10.244.0.0/16',
        clientConnection: { kubeconfig: join(directory, 'kubeconfig') },
      },
      families: [{ family: 'IPv4', addresses: [], refused: [] }],
    },
    ...[
      ...nodes.map(nodeToKubernetes),
      ...services.map(serviceToKubernetes),
      ...slices.map((slice) => endpointSliceToKubernetes(slice)),
    ].map((object): SnapshotLine => {
      const { annotations, labels } = object.metadata as Record<string, object | undefined>;
      const metadata = {
        ...object.metadata,
        annotations: { ...annotations, ...seeded.annotations },
        labels: { ...labels, ...seeded.labels },
      };
      return { kind: 'object', object: { ...object, metadata } };
    }),
  ];
}

function statusWith(findings: Status['findings']): Status {
  return { ...FULL_STATUS, findings };
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'junction-bundle-'));
  await writeFile(join(directory, 'kubeconfig'), KUBECONFIG);
  await writeFile(join(directory, 'token'), 'SeedTokenFile07\n');
  api = await FakeLocalApi.start();
  api.answers.set('/v1/snapshot', await snapshot());
  const findings: Status['findings'] = [
    {
      code: 'x',
      severity: 'error',
      text: `GET https://me:SeedUrlPassword12@api.example failed: SeedToken03`,
    },
    { code: 'y', severity: 'error', text: 'sent Authorization: Bearer SeedBearer11.x' },
    { code: 'z', severity: 'error', text: `the plugin printed ${PEM} and SeedExecEnv06, SeedExecArgument05` },
    {
      code: 'w',
      severity: 'error',
      text: 'SeedPassword04 SeedTokenFile07 SeedEnvironment08 SeedProxyPassword02',
    },
    { code: 'v', severity: 'error', text: `via http://u:SeedEnvProxy09@proxy, with ${KEY_DATA}` },
  ];
  api.answers.set('/v1/status', statusWith(findings));
  api.answers.set('/v1/events', [
    {
      kind: 'change',
      id: 1,
      family: 'IPv4',
      service: 'shop/api',
      causes: [],
      effects: [],
      seenAt: 1,
      plannedAt: 1,
    },
    {
      kind: 'change',
      id: 2,
      family: 'IPv4',
      service: 'shop/web',
      causes: ['the token SeedToken03 was in a cause'],
      effects: [],
      seenAt: 2,
      plannedAt: 3,
      committedAt: 4,
    },
    {
      kind: 'sync',
      at: 5,
      family: 'IPv4',
      sync: 'failed',
      cause: 'SeedToken03',
      commits: 0,
      objects: 0,
      ms: 1,
      error: 'SeedPassword04',
    },
    { kind: 'sync', at: 'yesterday' },
    { kind: 'nonsense', at: 1 },
  ]);
  vi.stubEnv('CLOUD_SECRET', 'SeedEnvironment08');
  vi.stubEnv('HTTPS_PROXY', 'http://u:SeedEnvProxy09@proxy.example:3128');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await api.close();
  await rm(directory, { recursive: true, force: true });
});

function bundle(...args: readonly string[]): ReturnType<typeof junction> {
  return junction('bundle', '--api-socket', api.socket, ...args);
}

describe('junction bundle', () => {
  test('has what a plan is made from, status, changes, versions and settings, and no secret', async () => {
    const path = join(directory, 'b.json.gz');
    const { code, out } = await bundle('--output', path);
    expect(out).toContain(`${path}: `);
    expect(code).toBe(0);
    expect((await stat(path)).mode & 0o777).toBe(0o600);

    const text = gunzipSync(await readFile(path)).toString('utf8');
    for (const seed of SEEDS) expect(text).not.toContain(seed);
    expect(text).toContain('[removed]');

    const read = await readBundle(path);
    const { services, slices, nodes } = await loadManifests(['examples']);
    expect(read.services).toEqual(services);
    expect(read.slices).toEqual(slices);
    expect(read.nodes).toEqual(nodes);
    expect(read.doctor).toMatchObject({ node: 'node1' });
    expect(read.status).toMatchObject({ node: 'node1', mode: 'nftables' });
    expect(read.events).toEqual([
      expect.objectContaining({ kind: 'change', id: 1, service: 'shop/api' }),
      expect.objectContaining({ kind: 'change', id: 2, service: 'shop/web' }),
      expect.objectContaining({ kind: 'sync', at: 5, cause: '[removed]', error: '[removed]' }),
    ]);
    expect(Object.keys(read.versions)).toEqual(
      expect.arrayContaining(['junction', 'node', 'kernel', 'iptables', 'nft']),
    );
    expect(Object.keys(read.sysctls).length + read.missing.length).toBeGreaterThan(0);
  });

  test('names its file by node and time, and overwrites none without --force', async () => {
    const path = join(directory, 'b.json.gz');
    await writeFile(path, 'precious');
    const refused = await bundle('--output', path);
    expect(refused.code).toBe(1);
    expect(refused.err).toContain(`${path} exists`);
    expect(await readFile(path, 'utf8')).toBe('precious');
    expect((await bundle('--output', path, '--force')).code).toBe(0);
    expect((await readBundle(path)).header.node).toBe('node1');
    expect((await readdir(directory)).filter((name) => name.includes('partial'))).toEqual([]);
  });

  test('says what it could not have', async () => {
    api.answers.delete('/v1/events');
    const path = join(directory, 'b.json.gz');
    const { code, err } = await bundle('--output', path);
    expect(code).toBe(0);
    expect(err).toContain('not in it: recent events: ');
    expect((await readBundle(path)).missing.join('\n')).toContain('recent events: ');
  });

  test('is of the running proxy', async () => {
    await api.close();
    const { code, err } = await bundle('--output', join(directory, 'x'));
    expect(code).toBe(1);
    expect(err).toContain('no Junction runs here');
    expect(await readdir(directory)).not.toContain('x');
    api = await FakeLocalApi.start();
  });
});

describe('other commands answer from a bundle', () => {
  let path = '';
  beforeEach(async () => {
    path = join(directory, 'b.json.gz');
    await bundle('--output', path);
  });

  test('explain, of a service and of a packet', async () => {
    const service = await junction('explain', 'shop/web', '--bundle', path);
    expect(service.out).toContain('shop/web');
    expect(service.err).toBe('');
    const packet = await junction(
      'explain',
      '--from',
      'outside',
      '--to',
      '203.0.113.10:80',
      '--bundle',
      path,
    );
    expect(packet.out).toContain('loadBalancerSourceRanges');
  });

  test('services and endpoints', async () => {
    const services = await junction('services', '--bundle', path);
    for (const name of ['api', 'cart', 'dns', 'web']) expect(services.out).toContain(`shop/${name}`);
    expect((await junction('endpoints', 'shop/web', '--bundle', path)).out).toContain('10.244.1.11:8081');
  });

  test('status', async () => {
    const { out } = await junction('status', '--bundle', path);
    expect(out).toContain('node1');
    expect(out).toContain('nftables mode');
    expect(JSON.parse((await junction('status', '--bundle', path, '-o', 'json')).out)).toMatchObject({
      node: 'node1',
    });
  });

  test('watch prints the changes that it has', async () => {
    const { code, out } = await junction('watch', '--bundle', path, '-o', 'json');
    expect(code).toBe(0);
    const events = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(events).toMatchObject([
      { kind: 'change', id: 1, service: 'shop/api' },
      { kind: 'change', id: 2, service: 'shop/web' },
      { kind: 'sync', at: 5 },
    ]);
  });

  test('doctor', async () => {
    const { out } = await junction('doctor', '--bundle', path, '-o', 'json');
    expect(JSON.parse(out)).toMatchObject({ node: 'node1', mode: 'nftables' });
  });

  test('and say what is wrong with one that is none', async () => {
    await writeFile(path, 'nonsense');
    for (const command of ['services', 'status', 'watch', 'doctor']) {
      const { code, err } = await junction(command, '--bundle', path);
      expect([command, code]).toEqual([command, 1]);
      expect(err).toContain('BUNDLE_UNREADABLE');
    }
  });
});

describe('diff of a bundle', () => {
  test('without anything of the kernel is not known to be the same', async () => {
    api.answers.set('/v1/snapshot', [...(await snapshot())].slice(0, 1));
    const path = join(directory, 'b.json.gz');
    await bundle('--output', path, '--family', 'ipv6');
    const { code, out } = await junction('diff', '--bundle', path, '--family', 'ipv4');
    expect(out).toContain('IPv4 is not compared: the bundle has nothing of the kernel');
    expect(code).toBe(1);
  });

  test('with a proposed manifest: what it does not name stays', async () => {
    const path = join(directory, 'b.json.gz');
    await bundle('--output', path);
    const proposed = join(directory, 'proposed.yaml');
    await writeFile(
      proposed,
      'kind: Service\nmetadata: { name: api, namespace: shop }\nspec: { clusterIP: 10.96.0.10, ports: [{ name: http, port: 81 }] }\n',
    );
    const { code, out } = await junction('diff', '--bundle', path, '--to-manifests', proposed);
    expect(code).toBe(1);
    expect(out).toContain('shop/api:http/TCP: cluster IP 10.96.0.10:81 added');
    expect(out).toContain('; 1 service;');
  });
});
