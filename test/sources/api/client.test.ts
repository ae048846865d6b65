/** Requests over real connections, with real certificates. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { ApiClient, type ApiResponse } from '../../../src/sources/api/client.ts';
import type { ApiAccess, Identity } from '../../../src/sources/api/credentials/identity.ts';
import type { ApiDiagnostic } from '../../../src/sources/api/diagnostics.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import {
  type ApiServerOptions,
  certificate,
  type Fault,
  privateKey,
  StatusError,
  TestApiServer,
} from '../../support/apiServer/index.ts';
import { MemoryNetwork } from '../../support/apiServer/memoryNetwork.ts';
import { startConnectProxy } from './connectProxy.ts';
import { openAccess } from './harness.ts';
import { SHOP } from './objects.ts';

const CA = certificate('ca');

async function serve(options: ApiServerOptions = { certificate: 'server' }): Promise<TestApiServer> {
  const server = await TestApiServer.start(options);
  server.put(...SHOP);
  onTestFinished(() => server.close());
  return server;
}

function connect(
  access: ApiAccess,
  more: Partial<ConstructorParameters<typeof ApiClient>[0]> = {},
): ApiClient {
  const client = new ApiClient({ access, clock: new FakeClock(), ...more });
  onTestFinished(() => client.close());
  return client;
}

function accessTo(
  server: TestApiServer,
  identity: Partial<Identity> = {},
  more: Partial<ApiAccess> = {},
): ApiAccess {
  return { ...openAccess(server.url, { ca: CA, ...identity }), ...more };
}

async function statusOf(client: ApiClient): Promise<number> {
  const { status, body } = await client.get('/api/v1/nodes', { resourceVersion: '0' });
  await drain(body);
  return status;
}

async function drain(body: ApiResponse['body']): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const OTHER_CA = certificate('otherCa');
const UNKNOWN = 'not signed by the authority that was given';
const WRONG_NAME = "Hostname/IP does not match certificate's altnames";

describe('trust', () => {
  it.each<[what: string, identity: Partial<Identity>, more: Partial<ApiAccess>, expected: string]>([
    ['the right authority', {}, {}, '200'],
    ['another authority', { ca: OTHER_CA }, {}, UNKNOWN],
    ['no authority', { ca: undefined }, {}, UNKNOWN],
    ['anybody', { ca: undefined }, { insecure: true }, '200'],
    ['the right name', {}, { serverName: 'kubernetes.default.svc' }, '200'],
    ['another name', {}, { serverName: 'other.example' }, WRONG_NAME],
  ])('%s', async (_, identity, more, expected) => {
    const server = await serve();
    const outcome = await statusOf(connect(accessTo(server, identity, more))).then(String, String);
    expect(outcome).toContain(expected);
    if (expected !== '200') expect(outcome).toContain('cannot trust the API server');
  });

  it('an expired certificate', async () => {
    const server = await serve({ certificate: 'expiredServer' });
    await expect(statusOf(connect(accessTo(server)))).rejects.toThrow('its certificate has expired');
  });
});

it('nothing listens, or no HTTP is spoken: the failure says so', async () => {
  const server = await serve();
  const plain = connect(openAccess(server.url.replace('https', 'http')));
  await expect(statusOf(plain)).rejects.toMatchObject({ name: 'JunctionError' });
  const { url } = server;
  await server.close();
  const failure: unknown = await statusOf(connect(openAccess(url))).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'API_UNREACHABLE', kind: 'unreachable' });
  expect(String(failure)).toMatch(/: connect ECONNREFUSED [\d.:]+$/);
  await server.listen();
});

describe('identity', () => {
  it('is a certificate; a new one makes new connections', async () => {
    const server = await serve({ certificate: 'server', clientCertificates: true });
    let identity: Identity = { authorization: undefined, ca: CA, certificate: undefined, key: undefined };
    const client = connect({ ...accessTo(server), identity: async () => identity });
    expect(await statusOf(client)).toBe(401);
    identity = { ...identity, certificate: certificate('client'), key: privateKey('client') };
    expect(await statusOf(client)).toBe(200);
    identity = { ...identity, certificate: certificate('expiredClient') };
    expect(await statusOf(client)).toBe(401);
  });
});

describe('the way', () => {
  it('may lead through a proxy', async () => {
    const proxy = await startConnectProxy();
    onTestFinished(() => proxy.close());
    const server = await serve({ certificate: 'server', tokens: ['t'] });
    const client = connect(accessTo(server, { authorization: 'Bearer t' }, { proxy: new URL(proxy.url) }));
    expect(await statusOf(client)).toBe(200);
    expect(proxy.tunnels).toEqual([server.host]);
  });

  it('through a proxy checks names and authorities too', async () => {
    const proxy = await startConnectProxy();
    onTestFinished(() => proxy.close());
    const server = await serve();
    const through = { proxy: new URL(proxy.url) };
    for (const access of [
      accessTo(server, {}, { ...through, serverName: 'other.example' }),
      accessTo(server, { ca: OTHER_CA }, through),
    ])
      await expect(statusOf(connect(access))).rejects.toThrow('cannot trust the API server');
  });

  it('may begin with a path; the server is told who asks, and what they take', async () => {
    const server = await serve({});
    const access = openAccess(`${server.url}/k8s/clusters/c-1/`);
    await statusOf(connect(access, { userAgent: 'junction/1.2.3' }));
    expect(server.log[0]).toMatchObject({
      path: '/k8s/clusters/c-1/api/v1/nodes',
      headers: { 'user-agent': 'junction/1.2.3', accept: 'application/json' },
    });
  });
});

describe('requests', () => {
  it('are counted by their answers, and as retries where the server wanted them later', async () => {
    const server = await serve({});
    const seen: string[] = [];
    const client = connect(openAccess(server.url), {
      onDiagnostic: (each) => {
        if (each.kind === 'request')
          seen.push(`${each.method} ${each.host} ${each.code}${each.isRetry ? ' again' : ''}`);
      },
    });
    const faults: readonly Fault[] = [
      { kind: 'status', error: new StatusError(503) },
      { kind: 'reset' },
      { kind: 'status', error: new StatusError(429, { retryAfter: '1' }) },
    ];
    for (const fault of faults) server.faults.add({ on: 'any', fault });
    for (let each = 0; each < 5; each++) await statusOf(client).catch(() => undefined);
    expect(await client.probe(new AbortController().signal)).toBe('ready');
    await server.close();
    expect(await client.probe(new AbortController().signal)).toBe('noAnswer');
    const codes = ['503', '<error>', '429', '200 again', '200', '200', '<error>'];
    expect(seen).toEqual(codes.map((code) => `GET ${server.host} ${code}`));
  });

  it('are measured until their answer has been read, watches are not', async () => {
    const server = await serve({});
    const seen: ApiDiagnostic[] = [];
    const clock = new FakeClock();
    const client = connect(openAccess(server.url), { clock, onDiagnostic: (each) => seen.push(each) });
    await client.get('/api/v1/nodes', { watch: 'true', resourceVersion: '200', timeoutSeconds: '9' });
    const { host } = server;
    const counted = { kind: 'request', method: 'GET', host, code: '200', isRetry: false };
    expect(seen).toEqual([{ kind: 'transport' }, { ...counted, limitedMs: undefined, sentBytes: undefined }]);

    const { body } = await client.get('/api/v1/nodes', { resourceVersion: '0' });
    expect(seen.slice(2)).toEqual([{ ...counted, limitedMs: 0, sentBytes: 0 }]);
    await clock.advance(40);
    const text = await drain(body);
    expect(seen.slice(3)).toEqual([
      { kind: 'answer', method: 'GET', host, durationMs: 40, receivedBytes: Buffer.byteLength(text) },
    ]);

    server.faults.add({ on: 'any', fault: { kind: 'reset' } });
    await expect(statusOf(client)).rejects.toThrow('/api/v1/nodes');
    expect(seen.at(-1)).toMatchObject({ kind: 'answer', receivedBytes: undefined });
  });

  it.each([
    [{ qps: 10, burst: 3 }, 3, 100],
    [{ qps: 0, burst: 0 }, 10, 200],
    [{ qps: -1, burst: 1 }, 12, 0],
  ])('are held back by the rate limit %j, watches are not', async (rateLimit, atOnce, everyMs) => {
    const network = new MemoryNetwork();
    const { clock } = network;
    const server = await serve({ network });
    const createDispatcher = network.createDispatcher.bind(network);
    const client = connect(openAccess(server.url), { clock, rateLimit, createDispatcher });
    const all = Promise.all(Array.from({ length: 12 }, () => statusOf(client)));
    await network.quiet();
    expect(server.count('list')).toBe(atOnce);
    const watch = { watch: 'true', resourceVersion: '200', timeoutSeconds: '9' };
    expect((await client.get('/api/v1/nodes', watch)).status).toBe(200);
    if (atOnce < 12) await clock.advance(everyMs);
    expect(server.count('list')).toBe(Math.min(atOnce + 1, 12));
    await clock.advance(12 * everyMs);
    expect(await all).toEqual(Array.from({ length: 12 }, () => 200));
  });

  it('that are refused say why', async () => {
    const server = await serve({});
    const client = connect(openAccess(server.url), { wallTime: () => Date.parse('2026-05-01T12:00:00Z') });
    const retryAfter = 'Fri, 01 May 2026 12:00:09 GMT';
    const error = new StatusError(429, {
      reason: 'TooManyRequests',
      message: 'slow\ndown\u202E',
      retryAfter,
    });
    server.faults.add({ on: 'any', fault: { kind: 'status', error } });
    const failure = await client.failureOf(await client.get('/api/v1/nodes'), 'listing nodes');
    expect(failure).toMatchObject({ kind: 'busy', retryAfterMs: 9000, code: 'API_REFUSED' });
    expect(failure.message).toBe('listing nodes: the API server answered 429 TooManyRequests: slow down ');
  });
});
