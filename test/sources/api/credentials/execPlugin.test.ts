import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isJunctionError } from '../../../../src/errors.ts';
import { runPlugin } from '../../../../src/system/pluginProcess.ts';
import { loadAccess } from '../../../../src/sources/api/credentials/load.ts';
import { certificate, privateKey } from '../../../support/apiServer/index.ts';
import { kubeconfigText, Machine } from './machine.ts';

const V1 = 'client.authentication.k8s.io/v1';
const server = 'https://10.0.0.1:6443';

function credential(status: object, apiVersion = V1): string {
  return JSON.stringify({ apiVersion, kind: 'ExecCredential', status });
}

function printing(stdout: string): Machine {
  const machine = new Machine();
  machine.plugin = () => ({ kind: 'ran', code: 0, stdout, stderr: '' });
  return machine;
}

describe('a credential plugin', () => {
  it.each([V1, 'client.authentication.k8s.io/v1beta1'])(
    'of %s is run when it is needed, and told what it must know',
    async (apiVersion) => {
      const machine = printing(credential({ token: 'abc' }, apiVersion));
      machine.env['HOME'] = '/root';
      const exec = {
        apiVersion,
        command: 'bin/login',
        args: ['a', 'b'],
        env: [{ name: 'REGION', value: 'eu' }],
        interactiveMode: 'IfAvailable',
        provideClusterInfo: true,
      };
      const access = await machine.kubeconfig({ server, 'tls-server-name': 'k' }, { exec });
      expect(machine.calls).toEqual([]);
      expect((await access.identity()).authorization).toBe('Bearer abc');
      await access.identity();
      const [call, ...others] = machine.calls;
      expect(others).toEqual([]);
      expect(call).toMatchObject({
        command: '/etc/junction/bin/login',
        args: ['a', 'b'],
        env: { HOME: '/root', REGION: 'eu' },
      });
      expect(JSON.parse(call?.env['KUBERNETES_EXEC_INFO'] ?? '')).toEqual({
        apiVersion,
        kind: 'ExecCredential',
        spec: { interactive: false, cluster: { server, 'tls-server-name': 'k' } },
      });
    },
  );

  it('is run again when its credential ends, and when it was refused', async () => {
    const machine = new Machine();
    let runs = 0;
    machine.plugin = () => {
      runs++;
      const expirationTimestamp = new Date(machine.wallTime + 60_000).toISOString();
      return {
        kind: 'ran',
        code: 0,
        stdout: credential({ token: `t${runs}`, expirationTimestamp }),
        stderr: '',
      };
    };
    const access = await machine.kubeconfig({ server }, { exec: { apiVersion: V1, command: 'login' } });
    const token = async (): Promise<string | undefined> => (await access.identity()).authorization;
    expect(await Promise.all([token(), token()])).toEqual(['Bearer t1', 'Bearer t1']);
    machine.wallTime += 50_000;
    expect(await token()).toBe('Bearer t1');
    machine.wallTime += 10_000;
    expect(await token()).toBe('Bearer t2');
    expect(await access.renew()).toBe(true);
    expect(await token()).toBe('Bearer t3');
  });

  it('may give a certificate', async () => {
    const machine = printing(
      credential({ clientCertificateData: certificate('client'), clientKeyData: privateKey('client') }),
    );
    const access = await machine.kubeconfig({ server }, { exec: { apiVersion: V1, command: 'login' } });
    expect(await access.identity()).toMatchObject({
      certificate: certificate('client'),
      key: privateKey('client'),
    });
    expect(machine.pluginCertificates).toEqual([certificate('client')]);
  });

  it.each([
    ['secret', 'is not JSON'],
    ['{}', 'is not an ExecCredential of'],
    [credential({ token: 'secret' }, 'v1'), 'is not an ExecCredential of'],
    [credential({}), 'has neither a token nor a certificate'],
    [credential({ token: 'secret', clientKeyData: 'secret' }), 'has only one of'],
    [credential({ token: 'secret', expirationTimestamp: 'soon' }), 'expirationTimestamp that is not a time'],
    [credential({ token: 'secret\nx' }), 'characters that no token has'],
  ])('that prints %j', async (stdout, message) => {
    const access = await printing(stdout).kubeconfig(
      { server },
      { exec: { apiVersion: V1, command: 'login' } },
    );
    const error: unknown = await access.identity().catch((reason: unknown) => reason);
    expect(isJunctionError(error, 'CREDENTIALS_UNAVAILABLE') && error.message).toContain(message);
    expect(isJunctionError(error) && error.message).toMatch(
      /^kubeconfig \/etc\/junction\/config, user "proxy", exec: /,
    );
    expect(isJunctionError(error) && `${error.message}${error.hint}${error.detail}`).not.toContain('secret');
  });

  it('that is not installed: the hint says how to install it', async () => {
    const exec = { apiVersion: V1, command: 'login', installHint: 'apt install login\n' };
    const access = await new Machine().kubeconfig({ server }, { exec });
    const error: unknown = await access.identity().catch((reason: unknown) => reason);
    expect(isJunctionError(error) && [error.message, error.hint]).toEqual([
      'kubeconfig /etc/junction/config, user "proxy", exec: cannot run "login": there is no such program',
      'apt install login',
    ]);
  });

  it.each([
    [{ command: 'x' }, 'apiVersion "" is not known'],
    [{ apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'x' }, 'is not known'],
    [{ apiVersion: V1 }, 'command is not set'],
    [{ apiVersion: V1, command: 'x', interactiveMode: 'Always' }, 'nobody sits at the terminal'],
    [{ apiVersion: V1, command: 'x', env: [{ value: 'x' }] }, 'env has an item without a name'],
  ])('is refused: %j', async (exec, message) => {
    await expect(new Machine().kubeconfig({ server }, { exec })).rejects.toThrow(message);
  });
});

describe('a real program', () => {
  async function access(script: string, timeoutMs?: number): ReturnType<typeof loadAccess> {
    const directory = await mkdtemp(join(tmpdir(), 'junction-exec-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, 'login'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const exec = { apiVersion: V1, command: './login', env: [{ name: 'WHO', value: 'jo' }] };
    await writeFile(join(directory, 'config'), kubeconfigText({ server }, { exec }));
    return loadAccess({
      kubeconfig: join(directory, 'config'),
      env: process.env,
      clock: new Machine().clock,
      runPlugin: (call) => runPlugin(call, timeoutMs),
    });
  }

  it('is started with its environment, and an input that has ended', async () => {
    const print = `printf '{"apiVersion":"${V1}","kind":"ExecCredential","status":{"token":"%s"}}' "$WHO$(cat)"`;
    expect((await (await access(print)).identity()).authorization).toBe('Bearer jo');
  });

  it('that runs too long is said to, not to have been ended by a signal', async () => {
    // Its pipes are closed by then, so that its end is noticed as early as can be.
    const identity = (await access('exec sleep 300 >&- 2>&-', 300)).identity();
    await expect(identity).rejects.toThrow('did not end within 0.3 s, and was killed');
  });

  it('that leaves a program behind which holds its output is not waited for', async () => {
    const print = `printf '{"apiVersion":"${V1}","kind":"ExecCredential","status":{"token":"t"}}'`;
    const identity = await (await access(`sleep 3 &\necho $! >&2\n${print}`)).identity();
    expect(identity.authorization).toBe('Bearer t');
  });

  it('may fail', async () => {
    const identity = (await access('echo no luck >&2; exit 3')).identity();
    await expect(identity).rejects.toMatchObject({
      message: expect.stringContaining('failed with status 3') as string,
      detail: 'no luck\n',
    });
  });
});
