import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiClient } from '../../../src/sources/api/client.ts';
import { execInPod } from '../../../src/sources/api/exec.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { certificate, StatusError, TestApiServer } from '../../support/apiServer/index.ts';
import type { ExecAnswer, ExecHandler } from '../../support/apiServer/exec.ts';
import { startConnectProxy } from './connectProxy.ts';

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'kube-system', name: 'junction-x1' },
  spec: { nodeName: 'node1' },
};

let server: TestApiServer;
let client: ApiClient;

async function start(options: Parameters<typeof TestApiServer.start>[0] = {}, proxy?: URL): Promise<void> {
  await client?.close();
  await server?.close();
  server = await TestApiServer.start(options);
  server.put(POD);
  const identity = {
    ...(options.certificate !== undefined && { ca: certificate('ca') }),
    ...(options.tokens !== undefined && { authorization: `Bearer ${options.tokens[0]}` }),
  };
  client = new ApiClient({
    access: {
      origin: 'test',
      server: new URL(server.url),
      proxy,
      identity: () => Promise.resolve(identity),
      renew: () => Promise.resolve(false),
    },
    clock: systemClock,
  });
}

beforeEach(() => start());
afterEach(async () => {
  await client.close();
  await server.close();
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(
  answer: ExecAnswer | ExecHandler,
  { pod = 'junction-x1', signal = new AbortController().signal, command = ['junction', 'status'] } = {},
): Promise<Ran> {
  server.exec = typeof answer === 'function' ? answer : () => answer;
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const code = await execInPod(
    client,
    {
      namespace: 'kube-system',
      pod,
      container: 'junction',
      command,
      out: (chunk) => out.push(chunk),
      err: (chunk) => err.push(chunk),
    },
    signal,
  );
  return { code, out: Buffer.concat(out).toString('utf8'), err: Buffer.concat(err).toString('utf8') };
}

describe('a command in a pod', () => {
  test('gives its output and its exit code', async () => {
    const answer = { stdout: ['one\n', 'two\n'], stderr: ['careful\n'], exitCode: 5 };
    expect(await run(answer)).toEqual({ code: 5, out: 'one\ntwo\n', err: 'careful\n' });
    expect(await run({ stdout: ['fine\n'] })).toEqual({ code: 0, out: 'fine\n', err: '' });
  });

  test('is sent word by word, whatever is in them', async () => {
    const command = ['junction', 'explain', '--to=svc/shop/web:80', 'a b', '&x=y', '%2F', 'ü', ''];
    await run({}, { command });
    expect(server.execs).toMatchObject([
      { namespace: 'kube-system', pod: 'junction-x1', container: 'junction', command },
    ]);
  });

  test('may speak the protocol of older servers', async () => {
    expect((await run({ stdout: ['x'], handshake: { protocol: 'v4.channel.k8s.io' } })).out).toBe('x');
    expect(server.execs[0]?.protocols).toEqual(['v5.channel.k8s.io', 'v4.channel.k8s.io']);
  });

  test('may have output of any size, in any pieces, with pings between them', async () => {
    const large = Buffer.alloc(300_000, 'abcdefg');
    const stdout = [large, 'x'.repeat(200), large.subarray(0, 126), 'y'];
    const whole = stdout.map(String).join('');
    expect((await run({ stdout })).out).toBe(whole);
    expect((await run({ stdout, inFragments: true })).out).toBe(whole);
  });

  test('goes through TLS, with a token, and through a proxy', async () => {
    await start({ certificate: 'server', tokens: ['right'] });
    expect((await run({ stdout: ['secured'] })).out).toBe('secured');
    const proxy = await startConnectProxy();
    try {
      await start({ certificate: 'server', tokens: ['right'] }, new URL(proxy.url));
      expect((await run({ stdout: ['proxied'] })).out).toBe('proxied');
    } finally {
      await proxy.close();
    }
  });
});

describe('a command that could not be run says why', () => {
  const forbidden = new StatusError(403, {
    reason: 'Forbidden',
    message: 'pods "junction-x1" is forbidden: User "jane" cannot create resource "pods/exec"',
  });

  test.each([
    ['403', forbidden, /answered 403 Forbidden: .*cannot create resource .*pods\/exec/],
    [
      '500 of the kubelet',
      new StatusError(500, {
        reason: 'InternalError',
        message: 'unable to upgrade connection: container not found ("junction")',
      }),
      /answered 500 InternalError: .*container not found/,
    ],
  ])('%s', async (_, error, message) => {
    await expect(run(() => Promise.reject(error))).rejects.toThrow(message);
  });

  test('no such pod', async () => {
    await expect(run({}, { pod: 'junction-gone' })).rejects.toThrow(
      /answered 404 NotFound: .*junction-gone.* not found/,
    );
  });

  test('a pod that has no node yet', async () => {
    server.put({ ...POD, metadata: { namespace: 'kube-system', name: 'junction-new' }, spec: {} });
    await expect(run({}, { pod: 'junction-new' })).rejects.toThrow('does not have a host assigned');
  });

  test('a wrong token', async () => {
    await start({ certificate: 'server', tokens: ['right'] });
    server.tokens.clear();
    await expect(run({})).rejects.toThrow('answered 401 Unauthorized');
  });

  test('a program that is not there', async () => {
    const failure =
      'Internal error occurred: error executing command in container: exec: "junction": not found';
    await expect(run({ failure })).rejects.toMatchObject({
      code: 'EXEC_FAILED',
      message: expect.stringContaining(failure) as string,
    });
  });

  test.each(['reset', 'close'] as const)(
    'a connection that ended before the command did (%s)',
    async (lost) => {
      await expect(run({ stdout: ['half'], lost })).rejects.toMatchObject({
        code: 'EXEC_FAILED',
        message: expect.stringContaining('the connection was lost') as string,
      });
    },
  );

  test('a server that is no WebSocket server', async () => {
    await expect(run({ handshake: { accept: 'nonsense' } })).rejects.toThrow(
      'not that of a WebSocket server',
    );
    await expect(run({ handshake: { protocol: 'v9.channel.k8s.io' } })).rejects.toThrow(
      'which was not offered',
    );
  });

  test('no server', async () => {
    await server.close();
    await expect(run({})).rejects.toMatchObject({ code: 'API_UNREACHABLE' });
  });
});

test('a signal ends the wait', async () => {
  const controller = new AbortController();
  const running = run({ stdout: ['begun'], hangs: true }, { signal: controller.signal });
  setTimeout(() => controller.abort(new Error('enough')), 50);
  await expect(running).rejects.toThrow('enough');
  const never = new AbortController();
  const asked = run(() => new Promise(() => undefined), { signal: never.signal });
  setTimeout(() => never.abort(new Error('stop')), 50);
  await expect(asked).rejects.toThrow('stop');
});
