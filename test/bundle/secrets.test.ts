/** Shapes of credentials. Those that a machine has: test/cli/bundle.test.ts. */
import { expect, test } from 'vitest';
import { REMOVED, SecretFilter } from '../../src/bundle/secrets.ts';

const PEM = '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7x\nq2v==\n-----END RSA PRIVATE KEY-----\n';
const shapes = new SecretFilter([]);

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
