/** `junction bundle`: what the file has and has not, other commands on it, and files that strangers made. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../src/bundle/format.ts';
import { readBundle } from '../../src/bundle/read.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { exampleObjects, HEADER, writeLines } from './bundleFile.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { StubApi } from './stubApi.ts';

const file = useFiles();
const stub = new StubApi();
const PEM = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKeySeed01\n-----END EC PRIVATE KEY-----\n';
const KEY_DATA = Buffer.from(PEM).toString('base64');
const KUBECONFIG = file(
  'kubeconfig',
  `
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
  user: { username: admin, password: 'Seed"Password\\04', tokenFile: token, client-key: client.key }
- name: w
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: get-credentials
      args: [get-token, --client-secret=SeedExecArgument05]
      env: [{ name: X, value: SeedExecEnv06 }]
- name: x
  user: { auth-provider: { name: oidc, config: { id-token: SeedIdToken14, client-secret: SeedOidcSecret15 } } }
`,
);
file('token', 'SeedTokenFile07\n');
file('client.key', PEM.replace('Seed01', 'Seed16'));

const KNOWN = [
  PEM.trim(),
  PEM.trim().replace('Seed01', 'Seed16'),
  'SeedProxyPassword02',
  'SeedToken03',
  'Seed"Password\\04',
  'SeedExecArgument05',
  'SeedExecEnv06',
  'SeedTokenFile07',
  'SeedEnvironment08',
  'SeedEnvProxy09',
  'SeedIdToken14',
  'SeedOidcSecret15',
];
/** Known by the shapes that they have, or because nothing of an object stays that no plan is made from. */
const SEEDS = [
  ...KNOWN,
  'KeySeed01',
  KEY_DATA,
  'SeedAnnotation10',
  'SeedBearer11',
  'SeedUrl12',
  'SeedLabel13',
];

const change = (id: number, service: string) => ({
  kind: 'change',
  id,
  family: 'IPv4',
  service,
  causes: ['the token SeedToken03 was in a cause'],
  effects: [],
  seenAt: id,
  plannedAt: id,
});
const SYNC = { kind: 'sync', at: 5, family: 'IPv4', sync: 'failed', commits: 0, objects: 0, ms: 1 };

const directory = dirname(KUBECONFIG);
const path = join(directory, 'b.json.gz');

function bundle(...args: readonly string[]): ReturnType<typeof junction> {
  return junction('bundle', '--api-socket', stub.socket, ...args);
}

beforeAll(async () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":"SeedAnnotation10"}' };
  const objects = (await exampleObjects()).map((object) => {
    const { labels } = object.metadata as { readonly labels?: object };
    const metadata = { ...object.metadata, annotations, labels: { ...labels, owner: 'SeedLabel13' } };
    return { kind: 'object', object: { ...object, metadata } };
  });
  const clientConnection = { kubeconfig: KUBECONFIG };
  const config = { ...HEADER.config, mode: 'nftables', clientConnection };
  const families = ['IPv4', 'IPv6'].map((family) => ({ family, addresses: [], refused: [] }));
  const lines = [{ ...HEADER, mode: 'nftables', config, families }, ...objects];
  stub.answer('/v1/snapshot', lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const forms = KNOWN.flatMap((seed) => [
    seed,
    encodeURIComponent(seed),
    Buffer.from(seed).toString('base64'),
  ]);
  const texts = ['GET https://me:SeedUrl12@api.example', 'sent Authorization: Bearer SeedBearer11.x', PEM];
  const findings = [...texts, KEY_DATA, ...forms.map((form) => `it said ${form} and ended`)].map((text) => ({
    code: 'x',
    severity: 'error',
    text,
  }));
  stub.answer('/v1/status', { ...FULL_STATUS, findings });
  const failed = { ...SYNC, cause: 'SeedToken03', error: 'SeedEnvironment08' };
  const nonsense = [
    { kind: 'sync', at: 'yesterday' },
    { kind: 'nonsense', at: 1 },
  ];
  stub.answer('/v1/events', [change(1, 'shop/api'), change(2, 'shop/web'), failed, ...nonsense]);
  vi.stubEnv('CLOUD_SECRET', 'SeedEnvironment08');
  vi.stubEnv('HTTPS_PROXY', 'http://u:SeedEnvProxy09@proxy.example:3128');
  await stub.start();
  const { code, err } = await bundle('--output', path);
  if (code !== 0) throw new Error(err);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await stub.remove();
});

describe('the file', () => {
  test('has no secret, and is for its owner alone', () => {
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const text = gunzipSync(readFileSync(path)).toString('utf8');
    expect(SEEDS.filter((seed) => text.includes(JSON.stringify(seed).slice(1, -1)))).toEqual([]);
    expect(text).toContain('"text":"it said [removed] and ended"');
    expect(text).not.toMatch(/"text":"it said (?!\[removed\] and ended")/);
  });

  test('has what a plan is made from, status, changes, versions and settings', async () => {
    const read = await readBundle(path);
    expect(read.doctor).toMatchObject({ node: 'node1' });
    expect(read.status).toMatchObject({ node: 'node1', mode: 'nftables' });
    expect(read.events).toEqual([
      { ...change(1, 'shop/api'), causes: ['the token [removed] was in a cause'] },
      { ...change(2, 'shop/web'), causes: ['the token [removed] was in a cause'] },
      { ...SYNC, cause: '[removed]', error: '[removed]' },
    ]);
    expect(Object.keys(read.versions)).toEqual(
      expect.arrayContaining(['junction', 'node', 'kernel', 'iptables', 'nft']),
    );
    expect(Object.keys(read.sysctls).length + read.missing.length).toBeGreaterThan(0);
  });

  test('replaces none without --force, and says what it could not have', async () => {
    const precious = file('precious.json.gz', 'precious');
    const refused = await bundle('--output', precious);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining(`${precious} exists`) });
    expect(readFileSync(precious, 'utf8')).toBe('precious');
    stub.answer('/v1/events', { error: { code: 'x', message: 'no events' } }, 500);
    const { code, err } = await bundle('--output', precious, '--force', '--family=ipv6');
    expect([code, err]).toEqual([0, expect.stringMatching(/^not in it: recent events: .*no events$/m)]);
    expect((await readBundle(precious)).missing).toEqual([expect.stringContaining('no events')]);
    // Of IPv4 it has nothing of the kernel, so nobody knows whether that is the same.
    const diff = await junction('diff', '--bundle', precious, '--family=ipv4');
    expect(diff.out).toContain('IPv4 is not compared: the bundle has nothing of the kernel');
    expect(diff.code).toBe(1);
  });

  test('is not there where it could not be written whole', async () => {
    const half = new StubApi();
    half.respondWith('/v1/snapshot', (_, response) => {
      response.writeHead(200, { 'content-length': '10000' });
      response.write(`${JSON.stringify(HEADER)}\n`, () => response.destroy());
    });
    await half.start();
    const target = join(directory, 'half.json.gz');
    const { code } = await junction('bundle', '--api-socket', half.socket, '--output', target);
    expect(code).toBe(1);
    expect(readdirSync(directory).filter((name) => /half|partial/.test(name))).toEqual([]);
    await half.remove();
  });
});

describe('other commands answer from it', () => {
  const ORIGINAL = ['--manifests=examples', '--hostname-override=node1', '--cluster-cidr=10.244.0.0/16'];

  test('services and endpoints: as from the manifests; explain: what was in the kernel too', async () => {
    for (const words of [['services'], ['endpoints', 'shop/web']])
      expect(await junction(...words, '--bundle', path)).toEqual(
        await junction(...words, ...ORIGINAL, '--proxy-mode=nftables'),
      );
    // The node that it was taken on has no rules.
    expect(await junction('explain', 'shop/web', '--bundle', path)).toMatchObject({ code: 5, err: '' });
  });

  test('watch, status and doctor: what it has of them', async () => {
    const events = (await junction('watch', '--bundle', path, '-o', 'json')).out.trimEnd().split('\n');
    expect(events.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { kind: 'change', id: 1, service: 'shop/api' },
      { kind: 'change', id: 2, service: 'shop/web' },
      { kind: 'sync', at: 5 },
    ]);
    for (const command of ['status', 'doctor']) {
      const { out } = await junction(command, '--bundle', path, '-o', 'json');
      expect(JSON.parse(out)).toMatchObject({ node: 'node1', mode: 'nftables' });
    }
  });

  test('diff with a proposed manifest: what that does not name stays', async () => {
    const proposed = file(
      'proposed.yaml',
      'kind: Service\nmetadata: { name: api, namespace: shop }\nspec: { clusterIP: 10.96.0.10, ports: [{ name: http, port: 81 }] }\n',
    );
    const { code, out } = await junction('diff', '--bundle', path, '--to-manifests', proposed);
    expect(code).toBe(1);
    expect(out).toContain('shop/api:http/TCP: cluster IP 10.96.0.10:81 added');
    expect(out).toContain('; 1 service;');
  });

  test('of one that is none they say so', async () => {
    const none = file('none.json.gz', 'nonsense');
    for (const command of ['services', 'status', 'watch', 'doctor', 'diff'])
      expect(await junction(command, '--bundle', none)).toMatchObject({
        code: 1,
        err: expect.stringContaining(`${none} is no bundle, or damaged`),
      });
  });
});

describe('a file that a stranger made', () => {
  const forged = (text: string | Buffer): string => {
    const target = join(directory, 'forged.json.gz');
    writeFileSync(target, gzipSync(text));
    return target;
  };
  const refusal = (target: string, limits = LIMITS): Promise<unknown> =>
    readBundle(target, limits).catch(({ code, message }: { code: string; message: string }) => [
      code,
      message,
    ]);
  const refused = (message: string): unknown => ['BUNDLE_UNREADABLE', expect.stringContaining(message)];

  test.each<readonly [string, readonly unknown[], string]>([
    ['without a header', [{ kind: 'object' }], 'begins with no header'],
    ['of a list', [[1, 2]], 'line 1 has no kind'],
    ['of a later format', [{ ...HEADER, format: 2 }], 'format is not known'],
    ['with a node that cannot be', [{ ...HEADER, node: '\u001b[2J' }], 'is not a valid name'],
    ['with a mode that cannot be', [{ ...HEADER, mode: 'ebpf' }], '"ebpf" is not known'],
  ])('%s is refused', async (_, lines, message) => {
    expect(await refusal(writeLines(join(directory, 'forged.json.gz'), lines))).toEqual(refused(message));
  });

  test('that is no text of JSON, or cut anywhere, is refused', async () => {
    expect(await refusal(forged('hello\nworld\n'))).toEqual(refused('line 1 is not JSON'));
    expect(await refusal(forged(''))).toEqual(refused('is empty'));
    for (const last of ['{"kind":"end","lines":9}\n', '{"kind":"e'])
      expect(await refusal(forged(`${JSON.stringify(HEADER)}\n${last}`))).toEqual(refused('is cut short'));
    expect(await refusal(join(directory, 'nothing'))).toEqual(refused('does not exist'));
    expect(await refusal(directory)).toEqual(refused('is not a file'));
    const whole = readFileSync(path);
    for (const part of [0.1, 0.5, 0.9, 0.99]) {
      const cut = join(directory, 'cut.json.gz');
      writeFileSync(cut, whole.subarray(0, Math.floor(whole.length * part)));
      expect(await refusal(cut)).toEqual(refused(''));
    }
  });

  test('that unpacks to too much is refused, whatever its own size', async () => {
    const limits = { ...LIMITS, bytes: 1024 * 1024, lineBytes: 64 * 1024, lines: 100 };
    const long = `{"kind":"header","a":"${'x'.repeat(50_000)}"}\n`;
    for (const [text, message] of [
      [Buffer.alloc(64 * 1024 * 1024, 0x20), 'a line of more than'],
      ['{"kind":"header"}\n'.repeat(200), 'has more than 100 lines'],
      [long.repeat(60), 'unpacks to more than 1 MiB'],
    ] as const)
      expect(await refusal(forged(text), limits)).toEqual(refused(message));
    expect(await refusal(path, { ...limits, fileBytes: 10 })).toEqual(refused('has more than'));
  });

  test('loses what cannot be used, and says so', async () => {
    const spec = { clusterIP: '10.0.0.1', ports: 'x' };
    const target = writeLines(join(directory, 'forged.json.gz'), [
      HEADER,
      { kind: 'object', object: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec } },
      { kind: 'object', object: { apiVersion: 'v1', kind: 'Secret', data: {} } },
      { kind: 'change', change: { id: 'x' } },
      // A line of version 0.2.
      { kind: 'change', change: change(1, 'shop/api') },
      { kind: 'kernel', family: 'IPX', dump: {} },
      { kind: 'versions', versions: ['6.1'] },
      { kind: 'something-new', value: 1 },
    ]);
    const { services, problems, events, kernel, versions } = await readBundle(target);
    expect({ services, events, kernel: kernel.size, versions }).toEqual({
      services: [],
      events: [change(1, 'shop/api')],
      kernel: 0,
      versions: {},
    });
    expect(problems.map(({ severity, object, message }) => [severity, object, message])).toEqual([
      ['error', 'Service default/web', 'spec.ports is "x"'],
      ['warning', undefined, 'an object of a kind that is not known is left out'],
    ]);
  });

  test('has a status only where every field is there, and of its kind', async () => {
    const [family] = FULL_STATUS.families;
    const source = { kind: 'manifests', paths: ['examples'], problems: [] };
    const hasStatus = async (status: unknown): Promise<boolean> => {
      const read = await readBundle(
        writeLines(join(directory, 's.json.gz'), [HEADER, { kind: 'status', status }]),
      );
      if (!read.status) expect(read.missing).toEqual(['status: it cannot be read']);
      return read.status !== undefined;
    };
    for (const good of [FULL_STATUS, { ...FULL_STATUS, source }]) expect(await hasStatus(good)).toBe(true);
    for (const key of Object.keys(FULL_STATUS)) {
      expect(await hasStatus({ ...FULL_STATUS, [key]: [[]] })).toBe(false);
      const isOptional = ['networkNamespace', 'conntrack'].includes(key);
      expect(await hasStatus({ ...FULL_STATUS, [key]: undefined })).toBe(isOptional);
    }
    for (const key of Object.keys(family ?? {}))
      expect(await hasStatus({ ...FULL_STATUS, families: [{ ...family, [key]: [{}, null] }] })).toBe(false);
    for (const raw of [null, 7, {}, { ...FULL_STATUS, source: { kind: 'api' } }])
      expect(await hasStatus(raw)).toBe(false);
  });
});
