/** The client of the local API, against a stub: what it asks, and what it says when there is no answer. */
import { renameSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apiPath, askJson, askLines } from '../../src/cli/localApi.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { StubApi } from './stubApi.ts';

const stub = new StubApi();
beforeAll(() => stub.start());
afterAll(() => stub.remove());
const file = useFiles();

test.each([
  [['status'], {}, '/v1/status'],
  [['explain', 'shop', 'web'], { port: '53/udp' }, '/v1/explain/shop/web?port=53%2Fudp'],
  [
    ['explain'],
    { from: 'pod/a/b', to: '[fd00::1]:80', at: undefined },
    '/v1/explain?from=pod%2Fa%2Fb&to=%5Bfd00%3A%3A1%5D%3A80',
  ],
  [['endpoints', '..', 'a b'], {}, '/v1/endpoints/../a%20b'],
])('%j %j: %s', (parts, query, path) => expect(apiPath(parts, query)).toBe(path));

test('lines, however they are cut', async () => {
  stub.respondWith('/v1/lines', (_, response) => {
    response.write('{"a":1}\n{"a"');
    setTimeout(() => response.end(':2}\n\n{"a":"ü"}'), 5);
  });
  const lines = [];
  for await (const line of askLines(stub.socket, '/v1/lines')) lines.push(line);
  expect(lines).toEqual([{ a: 1 }, { a: 2 }, { a: 'ü' }]);
});

describe('without a good answer', () => {
  const ask = (socket: string, path = '/v1/status'): Promise<unknown> =>
    askJson(socket, path, { timeoutMs: 5000 });

  test('no socket', async () => {
    await expect(ask('/nowhere/junction.sock')).rejects.toMatchObject({
      code: 'LOCAL_API_UNREACHABLE',
      message: '/nowhere/junction.sock: no Junction runs here: there is no such socket',
      hint: expect.stringMatching(/junction run.*--manifests.*--kubeconfig.*--bundle.*--api-socket/),
    });
  });

  test('a socket whose process has ended', async () => {
    const abandoned = createServer();
    const path = `${stub.socket}.old`;
    await new Promise<void>((resolve) => abandoned.listen(`${path}er`, resolve));
    // Closing deletes the file by its name; another name stays, as after kill -9.
    renameSync(`${path}er`, path);
    await new Promise((resolve) => abandoned.close(resolve));
    await expect(ask(path)).rejects.toMatchObject({
      code: 'LOCAL_API_UNREACHABLE',
      message: `${path}: the Junction that made this socket has ended`,
    });
  });

  test('a refusal with a reason', async () => {
    const error = {
      code: 'not-found',
      message: 'there is no Service "shop/wep"',
      hint: 'did you mean shop/web?',
    };
    stub.answer('/v1/refused', { error }, 404);
    await expect(ask(stub.socket, '/v1/refused')).rejects.toMatchObject({
      code: 'QUESTION_UNANSWERABLE',
      message: error.message,
      hint: error.hint,
    });
    stub.answer('/v1/failed', { error: { code: 'internal', message: 'it failed' } }, 500);
    await expect(ask(stub.socket, '/v1/failed')).rejects.toMatchObject({ code: 'LOCAL_API_REFUSED' });
  });

  test.each([
    ['no JSON', '<html>', 200],
    ['half of it', '{"a":', 200],
    ['an error without a reason', '{}', 500],
    ['an error that is no object', '[1]', 400],
  ])('%s', async (_, text, status) => {
    stub.respondWith('/v1/odd', (__, response) => response.writeHead(status).end(text));
    await expect(ask(stub.socket, '/v1/odd')).rejects.toMatchObject({ code: 'LOCAL_API_MALFORMED' });
  });

  test('cut off', async () => {
    stub.respondWith('/v1/cut', (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{');
      setTimeout(() => response.destroy(), 5);
    });
    await expect(ask(stub.socket, '/v1/cut')).rejects.toMatchObject({ code: 'LOCAL_API_UNREACHABLE' });
  });

  test('silence', async () => {
    const silent: Server = createServer();
    const path = `${stub.socket}.silent`;
    await new Promise<void>((resolve) => silent.listen(path, resolve));
    await expect(askJson(path, '/v1/status', { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'LOCAL_API_UNREACHABLE',
      message: expect.stringContaining('no answer within 0.05 s'),
    });
    silent.close();
  });
});

describe('commands without a proxy', () => {
  test.each([['status'], ['services'], ['endpoints', 'shop/web'], ['explain', 'shop/web'], ['watch']])(
    '%s %s',
    async (...words) => {
      const { code, out, err } = await junction(...words, '--api-socket=/nowhere/junction.sock');
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(
        /^junction: \/nowhere\/junction.sock: no Junction runs here.*\(LOCAL_API_UNREACHABLE\)\n {2}what to do: Start it/,
      );
    },
  );

  test('the socket may stand in the configuration file', async () => {
    const config = file(
      'config.yaml',
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\njunction: { apiSocket: /elsewhere/junction.sock }\n',
    );
    expect((await junction('status', '--config', config)).err).toContain(
      '/elsewhere/junction.sock: no Junction',
    );
  });

  test('no socket at all', async () => {
    const { code, err } = await junction('status', '--api-socket=');
    expect(code).toBe(2);
    expect(err).toContain('--api-socket is empty, so there is no running proxy to ask');
  });
});
