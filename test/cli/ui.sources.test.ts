/** `junction ui` without a running proxy: every path of the API, from manifests, standard input, a cluster and a bundle. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChangeRecord } from '../../src/explain/types.ts';
import { type RawObject, StatusError, TestApiServer } from '../support/apiServer/index.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { FakeKubectl } from '../support/kubectl.ts';
import { schemaProblems } from '../support/jsonSchema.ts';
import { exampleObjects, TAKEN_AT, writeExampleBundle } from './bundleFile.ts';
import { junction } from './junction.ts';
import { UiProgram } from './uiProgram.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'junction-ui-'));
afterAll(() => rmSync(folder, { recursive: true }));
const VIEW = ['--hostname-override=node1', '--cluster-cidr=10.244.0.0/16,fd00:244::/32'];
const SCHEMA = JSON.parse(readFileSync(`${ROOT}/docs/reference/api.schema.json`, 'utf8')) as Record<
  string,
  unknown
>;

/** What must be asked with them. */
const PARAMETERS: Readonly<Record<string, string>> = {
  '/v1/explain': '?from=outside&to=svc/shop/web',
  '/v1/names': '?kind=services',
  '/v1/watch': '?format=events',
};

interface Documented {
  readonly path: string;
  /** Of the schema, where it has the answer. */
  readonly type: string | undefined;
  readonly shape: 'one' | 'list' | 'stream';
}

/** docs/reference/api.md has a row for each path. */
const PATHS: readonly Documented[] = readFileSync(`${ROOT}/docs/reference/api.md`, 'utf8')
  .split('\n')
  .flatMap((line) => {
    const [, path, answer = ''] = /^\| `(\/v1\/[^`]+)` \|[^|]*\| (.*) \|$/.exec(line) ?? [];
    if (path === undefined) return [];
    const shape = answer.startsWith('list') ? 'list' : answer.startsWith('a stream') ? 'stream' : 'one';
    const [, name] = /\(#(\w+)\)/.exec(answer) ?? [];
    const type = Object.keys(SCHEMA['$defs'] ?? {}).find((each) => each.toLowerCase() === name);
    return [{ path, type, shape }];
  });

function problemsOf({ type, shape }: Documented, text: string): readonly string[] {
  if (shape === 'stream')
    return text
      .split('\n')
      .filter((line) => line !== '')
      .flatMap((line) => schemaProblems(SCHEMA, type ?? '', JSON.parse(line)));
  const answer: unknown = JSON.parse(text);
  if (type === undefined) return [];
  const items = shape === 'list' ? (answer as readonly unknown[]) : [answer];
  return items.flatMap((item) => schemaProblems(SCHEMA, type, item));
}

/** Asks for every path; returns the status of each, with the code of what is refused. */
async function askAll(ui: UiProgram): Promise<Readonly<Record<string, number | string>>> {
  const found: Record<string, number | string> = {};
  for (const documented of PATHS) {
    const { path } = documented;
    const ended = new AbortController();
    const asked = path.replace('NAMESPACE/NAME', 'shop/web') + (PARAMETERS[path] ?? '');
    const response = await ui.ask(asked, { signal: ended.signal });
    if (path === '/v1/watch' && response.headers.get('x-junction-events') === null) {
      ended.abort();
      found[path] = response.status;
      continue;
    }
    const text = await response.text();
    if (response.ok) expect([path, problemsOf(documented, text)]).toEqual([path, []]);
    else {
      const { error } = JSON.parse(text) as { readonly error: { code: string; message: string } };
      expect(error.message).not.toBe('');
      found[path] = `${response.status} ${error.code}`;
      continue;
    }
    found[path] = response.status;
  }
  return found;
}

const ALL_ANSWER = Object.fromEntries(PATHS.map(({ path }) => [path, 200]));
const ONE_NODE = { ...ALL_ANSWER, '/v1/nodes': '404 not-here' };

async function servicesOf(ui: UiProgram): Promise<readonly string[]> {
  return ((await ui.json('/v1/services')) as readonly { readonly service: string }[])
    .map(({ service }) => service)
    .sort();
}

/** Without what is said where it takes long. */
function said({ err }: UiProgram): readonly string[] {
  return err.split('\n').filter((line) => line !== '' && !line.startsWith('Reading '));
}

const EXAMPLES = ['api', 'cart', 'catalog', 'dns', 'idle', 'shopfront', 'web'].map((name) => `shop/${name}`);

test('the documentation has paths', () => expect(PATHS.length).toBeGreaterThan(10));

describe('manifests', () => {
  const manifests = join(folder, 'manifests');
  cpSync(`${ROOT}/examples`, manifests, { recursive: true });
  const textOf = (name: string): string => readFileSync(join(manifests, name), 'utf8');

  test('every path answers, in the words of explain; what changes is an event; what is broken is said', async () => {
    const ui = await UiProgram.serving([`--manifests=${manifests}`, ...VIEW]);
    expect(ui.out.split('\n')[1]).toBe(`node1, as it would serve ${manifests}. Ctrl-C: end.`);
    expect(await askAll(ui)).toEqual(ONE_NODE);
    expect(await servicesOf(ui)).toEqual(EXAMPLES);
    expect(await ui.json('/v1/status')).toMatchObject({
      node: 'node1',
      source: { kind: 'manifests', paths: [manifests], problems: [] },
      families: [
        { family: 'IPv4', services: 7, isServed: false },
        { family: 'IPv6', services: 1 },
      ],
      findings: [],
      answeredBy: { kind: 'plan' },
    });
    expect(await ui.json('/v1/doctor')).toMatchObject({ groups: [{ name: 'services' }] });
    expect((await ui.ask('/v1/status?wait=applied')).status).toBe(404);
    const { out } = await junction('explain', 'shop/web', `--manifests=${manifests}`, ...VIEW, '-o', 'json');
    expect(await ui.json('/v1/explain/shop/web')).toEqual(JSON.parse(out));
    expect(said(ui)).toEqual([]);

    const events = await ui.watch();
    const next = events.next();
    writeFileSync(join(manifests, 'web.yaml'), textOf('web.yaml').replaceAll('10.244.2.11', '10.244.2.99'));
    const { value } = (await next) as { readonly value: ChangeRecord };
    expect(value).toMatchObject({
      kind: 'change',
      service: 'shop/web',
      causes: ['EndpointSlice shop/web-1: endpoint 10.244.2.99 added, endpoint 10.244.2.11 removed'],
    });
    // Nothing is written here.
    expect(value.committedAt).toBeUndefined();
    const endpoints = JSON.stringify(await ui.json('/v1/endpoints/shop/web'));
    expect([endpoints.includes('10.244.2.99'), endpoints.includes('10.244.2.11')]).toEqual([true, false]);
    const [record] = (await ui.json('/v1/history?service=shop/web')) as readonly ChangeRecord[];
    expect({ kind: 'change', ...record }).toEqual(value);
    expect(await (await ui.ask('/v1/services?format=table')).text()).toContain('shop/web\t');

    rmSync(join(manifests, 'api.yaml'));
    expect((await events.next()).value).toMatchObject({ service: 'shop/api' });
    writeFileSync(join(manifests, 'web.yaml'), 'kind: [');
    await expect
      .poll(() => ui.json('/v1/status'))
      .toMatchObject({
        source: {
          problems: [expect.stringContaining('web.yaml:1: error'), expect.stringContaining('stays')],
        },
      });
    expect(ui.err).toContain('web.yaml:');
    // The last good one counts.
    expect(await servicesOf(ui)).toEqual(EXAMPLES.filter((name) => name !== 'shop/api'));
    ui.child.kill('SIGTERM');
    expect(await ui.ended).toBe(143);
  });

  test('standard input is read once', async () => {
    const text = ['dns.yaml', 'node.yaml'].map(textOf).join('\n---\n');
    const ui = await UiProgram.serving(['--manifests=-', ...VIEW], text);
    expect(await servicesOf(ui)).toEqual(['shop/dns']);
    expect((await ui.ask('/v1/watch')).headers.get('x-junction-events')).toBe('none');
  });
});

describe('a bundle', () => {
  const change = (id: number, service: string) => {
    const times = { seenAt: TAKEN_AT - 3000 + id, plannedAt: TAKEN_AT - 2000 + id };
    return { id, family: 'IPv4', service, causes: ['Service changed'], effects: [], ...times };
  };
  const CHANGES = [change(1, 'shop/api'), change(2, 'shop/web')];
  const SYNC = { kind: 'sync', at: TAKEN_AT - 5000, family: 'IPv4', sync: 'full', cause: 'start' };
  const EVENTS = [
    { ...SYNC, commits: 1, objects: 9, ms: 4 },
    ...CHANGES.map((each) => ({ kind: 'change', ...each })),
  ];
  const report = {
    node: 'node1',
    mode: 'iptables',
    at: TAKEN_AT,
    hasProblems: false,
    groups: [{ name: 'sysctls', findings: [], fine: ['all'], notEvaluated: [] }],
  };

  test('every path answers as it was then', async () => {
    const path = await writeExampleBundle(join(folder, 'all.json.gz'), [
      ...EVENTS.map((event) => ({ kind: 'event', event }) as const),
      { kind: 'status', status: FULL_STATUS },
      { kind: 'doctor', report },
    ]);
    const ui = await UiProgram.serving([path]);
    expect(ui.out.split('\n')[1]).toBe(
      `node1 as it was at 2026-11-16T14:03:12.000Z, from ${path}. Ctrl-C: end.`,
    );
    expect(await askAll(ui)).toEqual(ONE_NODE);
    expect((await ui.ask('/v1/watch?format=events')).headers.get('x-junction-events')).toBe('none');
    expect(await servicesOf(ui)).toEqual(EXAMPLES);
    const answeredBy = { kind: 'bundle', file: path, takenAt: TAKEN_AT };
    expect(await ui.json('/v1/status')).toEqual({ ...FULL_STATUS, answeredBy });
    expect(await ui.json('/v1/history')).toEqual(CHANGES.toReversed());
    expect(await ui.json('/v1/history?service=shop/api')).toEqual([CHANGES[0]]);
    expect(await ui.json('/v1/events')).toEqual(EVENTS);
    expect(await ui.json('/v1/doctor')).toEqual(report);
    expect(await ui.json('/v1/explain/shop/web')).toMatchObject({ changes: [CHANGES[1]] });
  });

  test('of a node where no proxy ran', async () => {
    const path = await writeExampleBundle(join(folder, 'bare.json.gz'), [
      { kind: 'doctor', report: { groups: 'many' } },
    ]);
    const ui = await UiProgram.serving(['--bundle', path]);
    expect(await askAll(ui)).toEqual({ ...ONE_NODE, '/v1/doctor': '404 not-here' });
    expect(await ui.json('/v1/status')).toMatchObject({ node: 'node1', answeredBy: { kind: 'bundle' } });
  });
});

describe('a cluster', () => {
  let server: TestApiServer;
  let kubeconfig = '';
  let kubectl: FakeKubectl;

  beforeEach(async () => {
    server = await TestApiServer.start();
    kubectl = new FakeKubectl(folder);
    server.put(...((await exampleObjects()) as unknown as readonly RawObject[]));
    kubeconfig = join(folder, 'kubeconfig');
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster: { server: server.url } }],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    );
  });
  afterEach(() => server.close());

  function pod(name: string, nodeName: string): RawObject {
    const labels = { 'app.kubernetes.io/name': 'junction' };
    const metadata = { namespace: 'kube-system', name, labels };
    return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName }, status: { phase: 'Running' } };
  }

  const forbidden = (message: string): StatusError => new StatusError(403, { reason: 'Forbidden', message });

  test('every path answers; what changes there is an event here', async () => {
    server.put(pod('junction-a', 'node1'));
    kubectl.answer({ stdout: [JSON.stringify({ ...FULL_STATUS, leftOut: [], findings: [] })] });
    const env = { ...process.env, PATH: kubectl.path };
    const ui = await UiProgram.serving(['--kubeconfig', kubeconfig, ...VIEW], undefined, env);
    expect(ui.out.split('\n')[1]).toBe(`node1, as it would serve what ${server.url} has. Ctrl-C: end.`);
    expect(await askAll(ui)).toEqual(ALL_ANSWER);
    expect(await servicesOf(ui)).toEqual(EXAMPLES);
    expect(await ui.json('/v1/status')).toMatchObject({
      node: 'node1',
      source: { kind: 'api', server: server.url, reconnects: 0 },
      answeredBy: { kind: 'plan' },
      findings: [],
    });
    expect(await ui.json('/v1/nodes')).toMatchObject([
      { node: 'node2', state: 'no pod' },
      {
        node: 'node1',
        state: 'not ready',
        object: { isReady: false, zone: 'zone-a' },
        status: { node: 'node1' },
      },
    ]);
    // It is kept for a while.
    expect(kubectl.calls()).toMatchObject([{ flags: ['--kubeconfig', kubeconfig] }]);

    const next = (await ui.watch()).next();
    await expect.poll(() => server.watches.size).toBeGreaterThan(2);
    server.delete('Service', 'shop/web');
    expect((await next).value).toMatchObject({ kind: 'change', service: 'shop/web' });
    expect(await servicesOf(ui)).toEqual(EXAMPLES.filter((name) => name !== 'shop/web'));
  });

  test('without a node named, it is the first one; where pods may not be asked, the Node objects say what they know', async () => {
    server.put(pod('junction-a', 'node1'));
    server.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node1' },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        nodeInfo: { kubeletVersion: 'v1.34.2' },
        addresses: [{ type: 'InternalIP', address: '192.168.100.2' }],
      },
    });
    const error = forbidden('pods is forbidden');
    server.faults.add({ on: 'list', resource: 'pods', fault: { kind: 'status', error } });
    const ui = await UiProgram.serving(['--kubeconfig', kubeconfig]);
    expect(said(ui)).toEqual(['note: this is what node1 does; --hostname-override names another node']);
    expect(await ui.json('/v1/nodes')).toMatchObject([
      { node: 'node2', state: 'not ready', object: { isReady: false } },
      {
        node: 'node1',
        state: 'not asked',
        detail: expect.stringContaining('pods is forbidden'),
        object: { isReady: true, version: 'v1.34.2', addresses: ['192.168.100.2'] },
      },
    ]);
  });

  test('that refuses', async () => {
    const error = forbidden('services is forbidden');
    const times = Number.POSITIVE_INFINITY;
    server.faults.add({ on: 'any', resource: 'services', times, fault: { kind: 'status', error } });
    const ui = await junction('ui', '--kubeconfig', kubeconfig, ...VIEW);
    expect(ui).toMatchObject({ code: 1, out: '', err: expect.stringContaining('services is forbidden') });
  });
});
