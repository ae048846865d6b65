/** The page of a running daemon: its files, its answers, its events, who may see it, and when its address changes. */
import { readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import type { Status } from '../../src/explain/status.ts';
import { useLab } from '../lab/requireLab.ts';
import { manifests, type ServiceWords } from './cluster.ts';
import { Daemon, eventually } from './daemon.ts';
import { ask } from './support/ask.ts';
import { Configured } from './support/configured.ts';
import { type OpenStreams, openStreams } from './support/eventStream.ts';
import { fetchFrom, tryFetch } from './support/fetch.ts';
import { useInLab } from './support/use.ts';

const api = (pods: string): ServiceWords => ({ name: 'api', ip: '10.96.1.1', nodePort: 30_080, pods });
/** node1, as others see it. */
const NODE = '192.168.100.2';

describe('the page of a daemon', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const running = useInLab(async () => {
    const daemon = await Daemon.create(node(), '--proxy-mode=nftables', '--ui-bind-address=0');
    await daemon.write(manifests([api('ac')]));
    await daemon.start();
    return daemon;
  });
  const links = (log: string): readonly string[] =>
    [...log.matchAll(/"Serving the page" link="(.*?)\/"/g)].map(([, link = '']) => link);
  const origin = (): string => links(running().log).at(-1) ?? '';
  const stream = (count: number): OpenStreams => {
    const streams = openStreams(node(), `${origin()}/v1/watch?format=events`, count);
    onTestFinished(() => streams.close());
    return streams;
  };

  test('is at the port that the log names, on loopback only', async () => {
    expect(origin()).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const beyond = origin().replace('127.0.0.1', NODE);
    expect(await tryFetch(node(), beyond)).toBe('ECONNREFUSED');
    expect(await tryFetch(lab().host('client'), beyond)).toBe('ECONNREFUSED');
  });

  test('has the files that its document names, and no others', async () => {
    const { status, headers, body } = await fetchFrom(node(), `${origin()}/services/shop/api`);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-cache',
    ]);
    const paths = [...body.matchAll(/(?:href|src)="(.*?)"/g)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThanOrEqual(3);
    for (const path of paths) {
      const file = await fetchFrom(node(), origin() + path, 'GET', { 'accept-encoding': 'br' });
      expect([path, file.status, file.headers['content-encoding']]).toEqual([path, 200, 'br']);
      expect(file.headers['content-security-policy']).toContain("default-src 'none'");
    }
    expect((await fetchFrom(node(), `${origin()}/index.html.br`)).status).toBe(404);
    const named = { host: 'evil.example' };
    expect((await fetchFrom(node(), origin(), 'GET', named)).status).toBe(421);
    expect((await fetchFrom(node(), origin(), 'GET', { host: 'NODE1' })).status).toBe(200);
  });

  test.each([
    '/v1/services',
    '/v1/endpoints/shop/api',
    '/v1/explain/shop/api',
    '/v1/explain?from=outside&to=svc/shop/api',
    '/v1/names?kind=services',
    '/v1/history?service=shop/api',
    '/v1/explain/shop/nothing',
    '/v1/services?nothing=1',
    '/v1/nothing',
  ])('answers %s as the socket does', async (path) => {
    const expected = await ask(running().socket, path);
    const { status, body } = await fetchFrom(node(), origin() + path);
    expect({ status, text: withoutCounts(body) }).toEqual({
      status: expected.status,
      text: withoutCounts(expected.text),
    });
  });

  test('says how the proxy is, and takes no orders', async () => {
    const { body } = await fetchFrom(node(), `${origin()}/v1/status`);
    expect(JSON.parse(body) as Status).toMatchObject({ mode: 'nftables', node: 'node1', findings: [] });
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await fetchFrom(node(), `${origin()}/v1/status`, method)).status).toBe(405);
  });

  test('tells a change to thirty tabs, and the proxy answers meanwhile', async () => {
    const tabs = stream(30);
    await eventually('all are open', () => tabs.opened.length === 30);
    expect(new Set(tabs.opened)).toEqual(new Set(['200 text/event-stream; charset=utf-8']));
    await running().write(manifests([api('acd')]));
    const hasChange = (tab: number): boolean =>
      tabs.events(tab).some((event) => event.kind === 'change' && event.service === 'shop/api');
    for (let tab = 0; tab < 30; tab++) await eventually(`tab ${tab} has it`, () => hasChange(tab));
    expect(tabs.events(0).some(({ kind }) => kind === 'sync')).toBe(true);
    expect(await answeredEndpoints()).toBe(3);
    await running().write(manifests([api('ac')]));
    await eventually('it is undone', async () => (await answeredEndpoints()) === 2);
  });

  async function answeredEndpoints(): Promise<number> {
    const { body } = await fetchFrom(node(), `${origin()}/v1/endpoints/shop/api`);
    return (JSON.parse(body) as readonly unknown[]).length;
  }

  test('turns away who watches beside sixty-four others, until one of them has gone', async () => {
    const tabs = stream(70);
    await eventually('some are refused', () => tabs.opened.length === 70);
    expect(tabs.opened.filter((line) => line.startsWith('200 '))).toHaveLength(64);
    expect(tabs.opened.filter((line) => line.startsWith('503 '))).toHaveLength(6);
    tabs.close();
    const next = async (): Promise<boolean> => {
      const one = stream(1);
      await eventually('an answer', () => one.opened.length === 1);
      return one.opened[0]?.startsWith('200 ') ?? false;
    };
    await eventually('there is room again', next);
  });

  test('ends its streams whole when the proxy ends, and is back with it', async () => {
    const tabs = stream(3);
    await eventually('they are open', () => tabs.opened.length === 3);
    expect(await running().end('SIGTERM')).toBe(0);
    await eventually('they have ended', () => tabs.ends.length === 3);
    expect(tabs.ends).toEqual(['whole', 'whole', 'whole']);
    await running().start();
    expect((await fetchFrom(node(), `${origin()}/v1/status`)).status).toBe(200);
  });
});

/** Two questions are asked one after the other, and the kernel counts meanwhile. */
function withoutCounts(text: string): string {
  return text.replaceAll(/"(?:packets|bytes|readAt|readMs)":[\d.]+/g, '');
}

describe('the page beyond loopback', () => {
  const lab = useLab();

  test('asks for the token that its file has, also after a restart, and no log has it', async () => {
    const node = lab().host('node1');
    const client = lab().host('client');
    const state = await mkdtemp(join(tmpdir(), 'junction-ui-'));
    const daemon = await Daemon.create(
      node,
      '--proxy-mode=nftables',
      '--ui-bind-address=0.0.0.0:8080',
      `--state-dir=${state}`,
      '--v=9',
    );
    onTestFinished(async () => {
      await daemon.close();
      await rm(state, { recursive: true });
    });
    await daemon.write(manifests([api('ac')]));
    await daemon.start();
    const file = join(state, 'ui-token');
    await eventually('it serves', () =>
      daemon.log.includes(`link="http://127.0.0.1:8080/" tokenFile="${file}"`),
    );
    const token = readFileSync(file, 'utf8').trim();
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const status = async (host: Host, sent?: string): Promise<number> => {
      const headers = sent === undefined ? {} : { authorization: `Bearer ${sent}` };
      return (await fetchFrom(host, `http://${NODE}:8080/v1/status`, 'GET', headers)).status;
    };
    expect((await fetchFrom(client, `http://${NODE}:8080/services`)).status).toBe(200);
    expect(await status(client)).toBe(401);
    expect(await status(client, `${token.slice(0, -1)}_`)).toBe(401);
    expect(await status(client, token)).toBe(200);
    expect(await status(node)).toBe(401);

    await daemon.end('SIGKILL');
    await daemon.start();
    await eventually(
      'it serves again',
      async () => (await tryFetch(client, `http://${NODE}:8080/`)) !== 'ECONNREFUSED',
    );
    expect(await status(client, token)).toBe(200);
    expect(daemon.log).not.toContain(token.slice(0, 20));
    expect(daemon.log).toContain('A wrong token was sent to the page');
  });
});

describe('the address in a configuration file', () => {
  const lab = useLab();

  test('is taken over while the proxy serves on, and waited for while another program has it', async () => {
    const node = lab().host('node1');
    const made = await Configured.create(node, [api('c')]);
    onTestFinished(() => made.close());
    const ui = (junction: object) => made.write({ junction: { apiSocket: '', stateDir: '', ...junction } });
    const status = async (port: number): Promise<number | string> => {
      const answer = await tryFetch(node, `http://127.0.0.1:${port}/v1/status`);
      return typeof answer === 'string' ? answer : answer.status;
    };
    await ui({});
    await made.start();
    expect(await status(8080)).toBe('ECONNREFUSED');

    await ui({ uiBindAddress: '8080' });
    await made.program.says('link="http://127.0.0.1:8080/"');
    expect(await status(8080)).toBe(200);
    expect(made.program.log).toContain(
      'field="junction.uiBindAddress" before="" after="8080" takesEffect="now"',
    );

    await ui({ uiBindAddress: '8080', uiTokenFile: join(made.directory, 'token') });
    await eventually('a token is asked for', async () => (await status(8080)) === 401);

    await node.serve([{ protocol: 'tcp', port: 8081, address: '127.0.0.1' }]);
    await ui({ uiBindAddress: ':8081' });
    await made.program.says('cannot serve the page at 127.0.0.1:8081: listen EADDRINUSE');
    expect(await status(8080)).toBe('ECONNREFUSED');

    await ui({ uiBindAddress: 'nonsense' });
    await made.program.says('junction.uiBindAddress: Invalid value: \\"nonsense\\"');
    await ui({ uiBindAddress: '127.0.0.1:8082' });
    await made.program.says('link="http://127.0.0.1:8082/"');
    expect(await status(8082)).toBe(200);

    await ui({});
    await eventually('it is gone', async () => (await status(8082)) === 'ECONNREFUSED');
    expect(made.program.isRunning).toBe(true);
    expect(made.program.log.match(/Cannot serve the page/g)).toHaveLength(1);
  });
});
