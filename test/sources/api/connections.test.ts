/** Whom the program talks to, and how: `junction plan` before API servers with real certificates, and the requests of a source. */
import { expect, it, onTestFinished } from 'vitest';
import { useFiles } from '../../cli/files.ts';
import { junction, type Run } from '../../cli/junction.ts';
import {
  type ApiServerOptions,
  certificate,
  privateKey,
  TestApiServer,
} from '../../support/apiServer/index.ts';
import { startConnectProxy } from './connectProxy.ts';
import { base64, kubeconfigText } from './credentials/machine.ts';
import { BUSY, status } from './faults.ts';
import { startHarness } from './harness.ts';
import { SHOP } from './objects.ts';

const file = useFiles();
const TRUSTED = { 'certificate-authority-data': base64(certificate('ca')) };
const OTHER = { 'certificate-authority-data': base64(certificate('otherCa')) };

async function serve(options: ApiServerOptions = { certificate: 'server' }): Promise<TestApiServer> {
  const server = await TestApiServer.start(options);
  server.put(...SHOP);
  onTestFinished(() => server.close());
  return server;
}

function plan(server: string, cluster: object, user: object = {}): Promise<Run> {
  const config = file('kubeconfig', kubeconfigText({ server, ...cluster }, user));
  return junction('plan', '--kubeconfig', config, '--hostname-override=node1', '--output=table');
}

const UNKNOWN = 'not signed by the authority that was given';

it.each<[what: string, cluster: object, refusal?: string]>([
  ['the right authority', TRUSTED],
  ['another authority', OTHER, UNKNOWN],
  ['no authority', {}, UNKNOWN],
  ['anybody', { 'insecure-skip-tls-verify': true }],
  ['the right name', { ...TRUSTED, 'tls-server-name': 'kubernetes.default.svc' }],
  [
    'another name',
    { ...TRUSTED, 'tls-server-name': 'other.example' },
    "does not match certificate's altnames",
  ],
])('%s, directly and through a proxy', async (_, cluster, refusal) => {
  const server = await serve();
  const proxy = await startConnectProxy();
  onTestFinished(() => proxy.close());
  for (const way of [{}, { 'proxy-url': proxy.url }]) {
    const { code, err } = await plan(server.url, { ...cluster, ...way });
    expect({ code, err }).toEqual({ code: refusal === undefined ? 0 : 1, err: expect.any(String) as string });
    if (refusal !== undefined) expect(err).toMatch(new RegExp(`cannot trust the API server.*${refusal}`));
  }
  expect(new Set(proxy.tunnels)).toEqual(new Set([server.host]));
});

it('an expired certificate is said to be one', async () => {
  const server = await serve({ certificate: 'expiredServer' });
  expect((await plan(server.url, TRUSTED)).err).toContain('its certificate has expired');
});

it('a client certificate lets in while it is valid', async () => {
  const server = await serve({ certificate: 'server', clientCertificates: true });
  const key = { 'client-key-data': base64(privateKey('client')) };
  const user = { 'client-certificate-data': base64(certificate('client')), ...key };
  expect(await plan(server.url, TRUSTED)).toMatchObject({
    code: 1,
    err: expect.stringContaining('401') as string,
  });
  expect(await plan(server.url, TRUSTED, user)).toMatchObject({ code: 0 });
});

it('the way may begin with a path; the server is told who asks', async () => {
  const server = await serve({});
  await plan(`${server.url}/k8s/clusters/c-1/`, {});
  const [first] = server.log;
  expect(first?.path).toMatch(/^\/k8s\/clusters\/c-1\/api/);
  expect(first?.headers['user-agent']).toMatch(/^junction\/\d/);
});

it('requests are told of: their answers, which were wanted later, and how much was read', async () => {
  const faults = [
    { on: 'list', resource: 'services', fault: status(503) },
    { on: 'list', resource: 'services', fault: { kind: 'reset' } },
    { on: 'list', resource: 'services', fault: BUSY },
  ] as const;
  const harness = await startHarness({ objects: SHOP, streamsLists: false, faults });
  await harness.settled();
  const codes = harness.diagnostics.flatMap((each) =>
    each.kind === 'request' ? [each.code + (each.isRetry ? ' again' : '')] : [],
  );
  expect(codes).toEqual(expect.arrayContaining(['422', '503', '<error>', '429', '200 again', '200']));
  const answers = harness.diagnostics.flatMap((each) => (each.kind === 'answer' ? [each.receivedBytes] : []));
  expect(answers).toContain(undefined);
  // Of three lists; watches are not measured.
  expect(answers.filter((bytes) => (bytes ?? 0) > 100)).toHaveLength(3);
});

it.each([
  [{ qps: 0.5, burst: 1 }, [1, 2, 3]],
  [{ qps: 0, burst: 0 }, [3, 3, 3]],
  [{ qps: -1, burst: 1 }, [3, 3, 3]],
])('lists are held back by the rate limit %j, watches are not', async (rateLimit, lists) => {
  const harness = await startHarness({ objects: SHOP, streamsLists: false, rateLimit });
  const seen: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    await harness.pass(turn === 0 ? 1000 : 2000);
    seen.push(harness.server.count('list'));
  }
  expect(seen).toEqual(lists);
  expect(harness.server.count('stream')).toBe(3);
});
