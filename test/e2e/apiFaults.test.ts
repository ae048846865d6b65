/** What goes wrong with API servers in real clusters: forwarding goes on, and the picture is right again afterwards. */
import { describe, expect, test } from 'vitest';
import type { Status } from '../../src/explain/status.ts';
import type { RawObject } from '../support/apiServer/index.ts';
import { useLab } from '../lab/requireLab.ts';
import { ApiNode } from './support/api/apiNode.ts';
import type { RemoteFault } from './support/api/serverProgram.ts';
import { askFor } from './support/ask.ts';
import { eventually } from './support/eventually.ts';
import { fetchFrom } from './support/fetch.ts';
import type { Program } from './support/program.ts';
import { ourRules } from './support/rules.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { nodeObject, objects } from './cluster.ts';

const API = '10.96.1.1';
const WEB = '10.96.1.2';
const SLICES = 'endpointslices';

const BEFORE = objects([{ name: 'api', ip: API, pods: 'ac' }]);
const AFTER = objects([{ name: 'api', ip: API, pods: 'bd' }]);
const GONE =
  '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n';
const [SOME, OTHERS] = ['pod-a pod-c', 'pod-b pod-d'];

describe('an API server in trouble', () => {
  const lab = useLab();
  const node = useInLab(() => ApiNode.create(lab().host('node1'), [nodeObject()]));

  async function start(contents: readonly RawObject[]): Promise<Program> {
    const { server } = node();
    await server.call('clearFaults');
    await node().put(...contents);
    const program = await node().serve('token', '--iptables-min-sync-period=0s');
    for (const resource of ['services', SLICES]) {
      await eventually(`a watch of ${resource}`, async () => (await server.call('watches', resource)) > 0);
    }
    return program;
  }

  /** Before, during and after each: what is served stays served, and the next change arrives. */
  async function expectToSurvive(
    ...troubles: readonly ((program: Program) => Promise<void>)[]
  ): Promise<void> {
    const client = lab().host('client');
    const program = await start(BEFORE);
    const session = await client.openSession(API, 80);
    for (const [index, trouble] of troubles.entries()) {
      const [now, next, answer] = index % 2 === 0 ? [SOME, OTHERS, AFTER] : [OTHERS, SOME, BEFORE];
      expect(await answerers(client, API)).toBe(now);
      const before = await ourRules(node().host);
      await trouble(program);
      expect(await answerers(client, API)).toBe(now);
      expect(await ourRules(node().host)).toBe(before);
      await node().put(...answer);
      await expectAnswers(client, API, next);
      expect((await session.send()).outcome).toBe('answer');
    }
    await session.close();
    expect(await program.end('SIGTERM')).toBe(0);
    // A version that expired is followed by a list: nobody has to be warned.
    expect(program.log).not.toMatch(/^W[^\]]*\].*(?:410|Expired)/m);
  }

  /** Watches break, and who asks again gets this. */
  async function breakAndAnswer(fault: RemoteFault): Promise<void> {
    const { server } = node();
    const asked = async (): Promise<number> =>
      (await server.call('requests')).filter(({ kind, resource }) => kind === 'watch' && resource === SLICES)
        .length;
    const before = await asked();
    await server.call('addFault', { on: ['watch'], resource: SLICES, fault });
    await server.call('dropConnections');
    await eventually('it asks again', async () => (await asked()) > before);
  }

  test('watches that tell nonsense and end', async () => {
    const { server } = node();
    await expectToSurvive(
      () => server.call('writeToWatches', SLICES, 'this is not JSON\n', 'stay'),
      () => server.call('writeToWatches', SLICES, GONE, 'end'),
    );
  });

  test('connections that break, and refusals', async () => {
    await expectToSurvive(
      () => breakAndAnswer({ kind: 'status', code: 429, retryAfter: '1' }),
      () => breakAndAnswer({ kind: 'answer', body: '<html>502 Bad Gateway</html>' }),
    );
  });

  test('one kind cannot be listed or watched: the log, the status, health and metrics say which and why', async () => {
    const { server, host } = node();
    const program = await start(BEFORE);
    const forbidden = { on: ['watch', 'list', 'stream'], resource: SLICES, times: 1000 } as const;
    await server.call('addFault', { ...forbidden, fault: { kind: 'status', code: 403 } });
    await server.call('dropConnections');
    await program.says(/backing off" resource="endpointslices".*answered 403/);
    const reason = expect.stringContaining('403') as string;
    const failing = async () => {
      const { source } = await askFor<Status>(node().socket, '/v1/status');
      return source.kind === 'api'
        ? source.resources.filter(({ resource, failingSince }) => resource === SLICES && failingSince)
        : [];
    };
    expect(await failing()).toMatchObject([{ resource: SLICES, hasListed: true, reason }]);
    const page = async (url: string): Promise<string> =>
      (await fetchFrom(host, `http://127.0.0.1:${url}`)).body;
    expect(JSON.parse(await page('10256/healthz'))).toMatchObject({
      resources: { [SLICES]: { hasListed: true, reason } },
    });
    expect(await page('10256/readyz?verbose')).toMatch(
      /\[\+\]endpointslices ok \(cannot be watched since .*403/,
    );
    expect(await page('10249/metrics')).toMatch(/^junction_api_resource_up\{resource="endpointslices"\} 0$/m);

    await server.call('clearFaults');
    await eventually('it is well again', async () => (await failing()).length === 0);
    expect(await page('10249/metrics')).toMatch(/^junction_api_resource_up\{resource="endpointslices"\} 1$/m);
    expect(await program.end('SIGTERM')).toBe(0);
  });

  test('it is gone for a while', async () => {
    await expectToSurvive(async (program) => {
      const from = program.log.length;
      await node().server.call('close');
      await program.says('Watch or list failed; retrying', from);
      expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-c');
      await node().server.call('listen');
    });
  });

  test('it comes back with other contents', async () => {
    const client = lab().host('client');
    const program = await start(BEFORE);
    expect(await answerers(client, API)).toBe('pod-a pod-c');
    const contents = [nodeObject(), ...objects([{ name: 'web', ip: WEB, pods: 'bd' }])];
    await node().server.call('close');
    await node().server.call('replace', contents, 5000);
    await node().server.call('listen');
    await expectAnswers(client, WEB, 'pod-b pod-d');
    await eventually(
      'the end of what is gone',
      async () => !(await ourRules(node().host)).includes('shop/api'),
    );

    await node().server.call('delete', 'Service', 'shop/web');
    await node().put(...BEFORE);
    await expectAnswers(client, API, 'pod-a pod-c');
    expect(await program.end('SIGTERM')).toBe(0);
  });
});
