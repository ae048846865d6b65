import { SLOW_TEXTS } from '../../../support/slowYaml.ts';
import { describe, expect, it } from 'vitest';
import { isJunctionError } from '../../../../src/errors.ts';
import { certificate, privateKey } from '../../../support/apiServer/index.ts';
import { base64, kubeconfigText, Machine } from './machine.ts';

const CA = certificate('ca');
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

function pod(host = '10.96.0.1'): Machine {
  const machine = new Machine();
  machine.env['KUBERNETES_SERVICE_HOST'] = host;
  machine.env['KUBERNETES_SERVICE_PORT'] = '443';
  machine.files.set(`${ACCOUNT}/ca.crt`, CA);
  machine.files.set(`${ACCOUNT}/token`, 'first\n');
  return machine;
}

describe('inside a cluster', () => {
  it.each([
    ['10.96.0.1', 'https://10.96.0.1', '10.96.0.1:443'],
    ['fd00::1', 'https://[fd00::1]', '[fd00::1]:443'],
  ])('the server is %s', async (host, origin, written) => {
    const access = await pod(host).load();
    expect(access.server.origin).toBe(origin);
    expect(access.host).toBe(written);
    expect(await access.identity()).toMatchObject({ authorization: 'Bearer first', ca: CA });
  });

  it('the token is read again after a minute, and after it was refused', async () => {
    const machine = pod();
    const access = await machine.load();
    machine.files.set(`${ACCOUNT}/token`, 'second');
    await machine.clock.advance(59_000);
    expect((await access.identity()).authorization).toBe('Bearer first');
    await machine.clock.advance(1000);
    expect((await access.identity()).authorization).toBe('Bearer second');
    machine.files.set(`${ACCOUNT}/token`, 'third');
    expect(await access.renew()).toBe(true);
    expect((await access.identity()).authorization).toBe('Bearer third');
    const reads = machine.reads.length;
    await access.identity();
    expect(machine.reads.length).toBe(reads);
  });

  it('a token that is just being replaced stays what it was', async () => {
    const machine = pod();
    const access = await machine.load();
    machine.files.set(`${ACCOUNT}/token`, '');
    await machine.clock.advance(60_000);
    expect((await access.identity()).authorization).toBe('Bearer first');
    machine.files.delete(`${ACCOUNT}/token`);
    await access.renew();
    expect((await access.identity()).authorization).toBe('Bearer first');
  });

  it.each(['token', 'ca.crt'])('needs the file %s', async (name) => {
    const machine = pod();
    machine.files.delete(`${ACCOUNT}/${name}`);
    await expect(machine.load()).rejects.toThrow(
      `service account: cannot read ${ACCOUNT}/${name}: there is no such file`,
    );
  });

  it('is not everywhere', async () => {
    const error: unknown = await new Machine().load().catch((reason: unknown) => reason);
    expect(isJunctionError(error, 'KUBECONFIG_INVALID') && error.hint).toContain('--kubeconfig');
  });
});

describe('an address alone', () => {
  it.each([
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['https://[::1]:6443/base/', 'https://[::1]:6443'],
  ])('%s', async (master, origin) => {
    const access = await new Machine().load({ master });
    expect(access.server.origin).toBe(origin);
    expect(await access.identity()).toEqual({
      authorization: undefined,
      ca: undefined,
      certificate: undefined,
      key: undefined,
    });
    expect(await access.renew()).toBe(false);
  });

  it.each(['ftp://x', 'https://', 'https://u:p@x', 'http://a b', 'https://x/?a=b'])(
    'is not %s',
    async (master) => {
      await expect(new Machine().load({ master })).rejects.toThrow('not the address of an API server');
    },
  );
});

describe('a kubeconfig', () => {
  const server = 'https://10.0.0.1:6443';

  it('gives the server, and whom to trust', async () => {
    const access = await new Machine().kubeconfig({
      server: `${server}/api/`,
      'certificate-authority-data': base64(CA),
      'tls-server-name': 'kubernetes',
      'proxy-url': 'http://proxy:3128',
    });
    expect(access).toMatchObject({ insecure: false, serverName: 'kubernetes' });
    expect(access.server.href).toBe(`${server}/api/`);
    expect(access.proxy?.host).toBe('proxy:3128');
    expect(access.origin).toBe('kubeconfig /etc/junction/config, context "prod"');
    expect((await access.identity()).ca).toBe(CA);
  });

  it('yields to --master, and so does its tls-server-name', async () => {
    const machine = new Machine();
    const access = await machine.kubeconfig(
      { server, 'tls-server-name': 'x' },
      { token: 't' },
      'https://10.0.0.2:6443',
    );
    expect(access.server.host).toBe('10.0.0.2:6443');
    expect(access.serverName).toBeUndefined();
    expect((await access.identity()).authorization).toBe('Bearer t');
    machine.files.set('/empty', '{}');
    const bare = await machine.load({ kubeconfig: '/empty', master: 'https://10.0.0.3' });
    expect([bare.server.host, bare.host]).toEqual(['10.0.0.3', '10.0.0.3']);
    const port = await machine.load({ kubeconfig: '/empty', master: 'https://10.0.0.3:443/api' });
    expect([port.server.host, port.host]).toEqual(['10.0.0.3', '10.0.0.3:443']);
  });

  it('may be JSON, or leave out the scheme', async () => {
    const machine = new Machine();
    const cluster = { server: '10.0.0.1', 'insecure-skip-tls-verify': true };
    const contexts = [{ name: 'a', context: { cluster: 'c' } }];
    const config = { 'current-context': 'a', contexts, clusters: [{ name: 'c', cluster }] };
    machine.files.set('/k.json', JSON.stringify(config));
    const access = await machine.load({ kubeconfig: '/k.json' });
    expect(access.server.href).toBe('https://10.0.0.1/');
    expect(access.insecure).toBe(true);
  });

  it('finds files beside it', async () => {
    const machine = new Machine();
    machine.files.set('/etc/junction/pki/ca.crt', CA);
    machine.files.set('/etc/junction/token', 'one');
    machine.files.set('/c.crt', certificate('client'));
    machine.files.set('/etc/client.key', privateKey('client'));
    const access = await machine.kubeconfig(
      { server, 'certificate-authority': 'pki/ca.crt' },
      { tokenFile: 'token', token: 'spare', 'client-certificate': '/c.crt', 'client-key': '../client.key' },
    );
    expect(await access.identity()).toEqual({
      authorization: 'Bearer one',
      ca: CA,
      certificate: certificate('client'),
      key: privateKey('client'),
    });
  });

  it('may have a password', async () => {
    const access = await new Machine().kubeconfig({ server }, { username: 'jo', password: 'pä:ss' });
    expect((await access.identity()).authorization).toBe(`Basic ${base64('jo:pä:ss')}`);
  });

  const SECRET = 'c2VjcmV0';
  it.each<[object, object, string]>([
    [{}, {}, 'cluster "main": server is not set'],
    [{ server: 'ftp://x' }, {}, 'cluster "main": server: "ftp://x" is not the address'],
    [
      { server, 'certificate-authority-data': '!!' },
      {},
      'cluster "main": certificate-authority-data is not base64',
    ],
    [
      { server, 'certificate-authority': 'gone' },
      {},
      'cluster "main": certificate-authority: cannot read /etc/junction/gone: there is no such file',
    ],
    [
      { server, 'insecure-skip-tls-verify': true, 'certificate-authority': 'x' },
      {},
      'insecure-skip-tls-verify cannot be true beside',
    ],
    [
      { server, 'proxy-url': 'socks5://x' },
      {},
      'cluster "main": proxy-url is not the address of an HTTP proxy',
    ],
    [{ server }, { token: `${SECRET}\nx` }, 'user "proxy": token has characters that no token has'],
    [
      { server },
      { 'client-certificate-data': base64(certificate('client')) },
      'user "proxy": client-key is not set',
    ],
    [
      { server },
      { 'client-certificate-data': base64(certificate('client')), 'client-key-data': SECRET },
      'the client key is not a private key',
    ],
    [
      { server },
      {
        'client-certificate-data': base64(certificate('client')),
        'client-key-data': base64(privateKey('server')),
      },
      'the client key does not belong to the client certificate',
    ],
    [
      { server },
      {
        'client-certificate-data': base64(certificate('expiredClient')),
        'client-key-data': base64(privateKey('client')),
      },
      'the client certificate expired on Jan  2 00:00:00 2020 GMT',
    ],
    [{ server }, { 'auth-provider': { name: 'gcp' } }, 'user "proxy": auth-provider is not supported'],
    [{ server }, { as: 'admin' }, 'user "proxy": as is not supported'],
  ])('is refused: %j %j', async (cluster, user, message) => {
    const error: unknown = await new Machine().kubeconfig(cluster, user).catch((reason: unknown) => reason);
    expect(isJunctionError(error) && error.message).toContain(message);
    expect(isJunctionError(error) && error.message).toMatch(/^kubeconfig \/etc\/junction\/config/);
    expect(isJunctionError(error) && `${error.message} ${error.hint}`).not.toContain(SECRET);
  });

  it.each([
    ['', 'current-context is not set'],
    ['[]', 'is a list, not a map'],
    [`token: ${SECRET}\n\tx: [`, 'kubeconfig /k:2: it is not YAML'],
    ...SLOW_TEXTS.map(({ text, line }): [string, string] => [text, `kubeconfig /k:${line}: `]),
    ['current-context: x', 'contexts has no context "x", which current-context names'],
    [kubeconfigText({}, {}).replace('cluster: main', 'cluster: other'), 'clusters has no cluster "other"'],
    [kubeconfigText({}, {}).replace('user: proxy', 'user: other'), 'users has no user "other"'],
    ['clusters: 7\ncurrent-context: x', 'contexts has no context'],
  ])('is refused: %#', async (text, message) => {
    const machine = new Machine();
    machine.files.set('/k', text);
    const error: unknown = await machine.load({ kubeconfig: '/k' }).catch((reason: unknown) => reason);
    expect(isJunctionError(error, 'KUBECONFIG_INVALID') && error.message).toContain(message);
    expect(String(error)).not.toContain(SECRET);
  });

  it('must be there', async () => {
    await expect(new Machine().load({ kubeconfig: '/none' })).rejects.toThrow(
      'kubeconfig /none: there is no such file',
    );
  });
});

describe('the authorities of the machine', () => {
  it.each<[object, Record<string, string>, string | undefined]>([
    [{ server: 'https://a' }, { '/etc/ssl/cert.pem': CA }, CA],
    [{ server: 'https://a', 'insecure-skip-tls-verify': true }, { '/etc/ssl/cert.pem': CA }, undefined],
    [
      { server: 'https://a', 'certificate-authority': 'ca' },
      { '/etc/ssl/cert.pem': 'x', '/etc/junction/ca': CA },
      CA,
    ],
  ])('%j', async (cluster, files, expected) => {
    const machine = new Machine();
    for (const [path, text] of Object.entries(files)) machine.files.set(path, text);
    expect((await (await machine.kubeconfig(cluster)).identity()).ca).toBe(expected);
  });

  it('may be named by SSL_CERT_FILE', async () => {
    const machine = new Machine();
    machine.env['SSL_CERT_FILE'] = '/mine';
    machine.files.set('/mine', CA);
    expect((await (await machine.load({ master: 'https://a' })).identity()).ca).toBe(CA);
  });
});

describe('a proxy from the environment', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['https://10.0.0.1:6443', '', true],
    ['https://10.0.0.1:6443', '10.0.0.0/8', false],
    ['https://10.0.0.1:6443', '10.0.0.1', false],
    ['https://10.0.0.1:6443', '10.0.0.1:6443', false],
    ['https://[fd00::1]:6443', 'fd00::/8', false],
    ['https://api.example.com', 'example.com', false],
    ['https://api.example.com', '.example.com', false],
    ['https://example.com', '.example.com', true],
    ['https://badexample.com', 'example.com', true],
    ['https://localhost:6443', '', false],
  ];
  it.each(cases)('to %s without %j: %s', async (master, exempt, expected) => {
    const machine = new Machine();
    machine.env['https_proxy'] = 'proxy.example:3128';
    machine.env['NO_PROXY'] = exempt;
    expect((await machine.load({ master })).proxy?.href).toBe(
      expected ? 'http://proxy.example:3128/' : undefined,
    );
  });
});
