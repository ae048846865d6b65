import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { knownSecrets, REMOVED, SecretFilter } from '../../src/bundle/secrets.ts';

const PEM = '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7x\nq2v==\n-----END RSA PRIVATE KEY-----\n';
const shapes = new SecretFilter([]);

describe('shapes of credentials', () => {
  test.each([
    ['https://admin:s3cr3t-pw@proxy.example:3128/path', 's3cr3t-pw'],
    ['http://token-only-user@host', 'token-only-user'],
    ['Authorization: Bearer abcdef.ghijkl', 'abcdef.ghijkl'],
    ['authorization: Basic dXNlcjpwYXNzd29yZA==', 'dXNlcjpwYXNzd29yZA'],
    ['the token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl was refused', 'eyJhbGci'],
    [PEM, 'MIIEowIBAAKCAQEA7x'],
    [Buffer.from(PEM).toString('base64'), Buffer.from(PEM).toString('base64').slice(20, 40)],
    ['password=hunter22 and more', 'hunter22'],
    ['curl --token abcdefgh https://x', 'abcdefgh'],
    ['{"client-key-data": "LS0tLS1abcdefghijklmnop", "id-token": "opaque-value"}', 'opaque-value'],
    ['{"client-key-data": "LS0tLS1abcdefghijklmnop"}', 'abcdefghijklmnop'],
    ['AWS_SECRET=abcd1234', 'abcd1234'],
    ['api_key: 0123456789', '0123456789'],
  ])('%j is cleaned', (text, secret) => {
    const cleaned = shapes.clean(JSON.stringify({ text }));
    expect(() => JSON.parse(cleaned) as unknown).not.toThrow();
    expect(cleaned).toContain(REMOVED);
    expect(cleaned).not.toContain(secret);
  });

  test.each([
    'shop/web:http/TCP',
    'the token expired',
    'EndpointSlice shop/web-1: endpoint 10.1.0.7 not ready',
    '-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/secret-store:http" -j KUBE-SEP-X',
    'https://10.0.0.1:6443',
  ])('%j stays', (text) => {
    const json = JSON.stringify({ text });
    expect(shapes.clean(json)).toBe(json);
  });
});

describe('what this machine has', () => {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-secrets-'));
    await writeFile(join(directory, 'token'), 'token-in-a-file-1\n');
    await writeFile(join(directory, 'client.key'), PEM);
    await writeFile(join(directory, 'pod-token'), 'token-of-the-pod-2');
    await writeFile(join(directory, 'kubeconfig'), KUBECONFIG);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const KUBECONFIG = `
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: https://api.example:6443
    proxy-url: http://proxy-user:proxy-password-3@proxy.example:3128
users:
- name: a
  user: {token: inline-token-4}
- name: b
  user: {tokenFile: token, client-key: client.key}
- name: c
  user: {username: admin, password: 'pass"word\\5'}
- name: d
  user: {client-key-data: ${Buffer.from(PEM).toString('base64')}}
- name: e
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: get-credentials
      args: [get-token, --client-id, client-secret-argument-6]
      env: [{name: HARMLESS_NAME, value: exec-env-value-7}]
- name: f
  user:
    auth-provider: {name: oidc, config: {id-token: id-token-8, refresh-token: refresh-token-9, client-secret: oidc-secret-10}}
`;

  test('is removed wherever it stands, plain, in a URL or in base64', async () => {
    const values = await knownSecrets({
      kubeconfig: join(directory, 'kubeconfig'),
      tokenFile: join(directory, 'pod-token'),
      env: {
        PATH: '/usr/bin',
        AWS_SECRET_ACCESS_KEY: 'env-secret-11',
        HTTPS_PROXY: 'http://u:proxy-env-password-12@proxy:3128',
      },
      urls: ['https://master-user:master-password-13@api.example'],
    });
    const secrets = [
      'token-in-a-file-1',
      'token-of-the-pod-2',
      'proxy-password-3',
      'inline-token-4',
      'pass"word\\5',
      'client-secret-argument-6',
      'exec-env-value-7',
      'id-token-8',
      'refresh-token-9',
      'oidc-secret-10',
      'env-secret-11',
      'proxy-env-password-12',
      'master-password-13',
      PEM.trim(),
    ];
    const filter = new SecretFilter(values);
    for (const secret of secrets) {
      for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]) {
        const text = `it said ${form} and ended`;
        const cleaned = filter.clean(JSON.stringify({ text }));
        expect(JSON.parse(cleaned)).toEqual({ text: `it said ${REMOVED} and ended` });
      }
    }
    const plain = JSON.stringify({
      text: 'get-token of https://api.example:6443 by get-credentials in /usr/bin',
    });
    expect(filter.clean(plain)).toBe(plain);
  });

  test('is nothing where there is nothing to read', async () => {
    const nowhere = join(directory, 'nothing');
    const found = await knownSecrets({ kubeconfig: nowhere, tokenFile: nowhere, env: {} });
    expect(found.join('')).toBe('');
    const filter = new SecretFilter(found);
    expect(filter.clean('{"a":"b"}')).toBe('{"a":"b"}');
  });
});
