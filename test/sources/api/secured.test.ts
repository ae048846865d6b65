/** The whole source against a server that asks who comes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { runPlugin } from '../../../src/system/pluginProcess.ts';
import { loadAccess } from '../../../src/sources/api/credentials/load.ts';
import { certificate, certificatePath, keyPath, type TestApiServer } from '../../support/apiServer/index.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { kubeconfigText } from './credentials/machine.ts';
import { startHarness } from './harness.ts';
import { SHOP, service } from './objects.ts';

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'junction-api-'));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

/** Access is loaded before the server's port is known, so the file is written when the port is. */
async function load(server: TestApiServer, path: string, user: object): ReturnType<typeof loadAccess> {
  const cluster = { server: server.url, 'certificate-authority': certificatePath('ca') };
  await writeFile(join(path, 'config'), kubeconfigText(cluster, user));
  return loadAccess({ kubeconfig: join(path, 'config'), env: {}, clock: new FakeClock(), runPlugin });
}

it('a client certificate', async () => {
  const path = await directory();
  const user = { 'client-certificate': certificatePath('client'), 'client-key': keyPath('client') };
  const harness = await startHarness({
    objects: SHOP,
    certificate: 'server',
    clientCertificates: true,
    access: (server) => load(server, path, user),
  });
  await harness.settled();
  expect(harness.server.log.every(({ headers }) => headers.authorization === undefined)).toBe(true);
});

it('a token that rotates while watches are open', async () => {
  const path = await directory();
  await writeFile(join(path, 'token'), 'first');
  const harness = await startHarness({
    objects: SHOP,
    certificate: 'server',
    tokens: ['first'],
    access: (server) => load(server, path, { tokenFile: 'token' }),
  });
  const { server } = harness;
  await harness.settled();
  const lists = server.count('stream');
  await writeFile(join(path, 'token'), 'second');
  server.tokens.clear();
  server.tokens.add('second');
  server.dropConnections();
  server.put(service('new', { clusterIP: '10.96.0.20' }));
  await harness.settled();
  expect(server.count('stream')).toBe(lists);
});

it('a token that comes too late', async () => {
  const path = await directory();
  await writeFile(join(path, 'token'), 'wrong');
  const harness = await startHarness({
    objects: SHOP,
    certificate: 'server',
    tokens: ['right'],
    access: (server) => load(server, path, { tokenFile: 'token' }),
  });
  const failures = (): readonly string[] =>
    harness.diagnostics.flatMap((each) => (each.kind === 'backingOff' ? each.failure.hint : []));
  await harness.until('it is refused', () => failures().length > 2);
  expect(failures()[0]).toContain('does not know these credentials');
  await writeFile(join(path, 'token'), 'right');
  await harness.settled();
});

it('a server whose certificate is not trusted is waited for', async () => {
  const path = await directory();
  const trusted = join(path, 'ca.crt');
  await writeFile(trusted, certificate('otherCa'));
  const harness = await startHarness({
    objects: SHOP,
    certificate: 'server',
    access: async (server) => {
      const cluster = { server: server.url, 'certificate-authority': trusted };
      await writeFile(join(path, 'config'), kubeconfigText(cluster, {}));
      const clock = new FakeClock();
      const access = await loadAccess({ kubeconfig: join(path, 'config'), env: {}, clock, runPlugin });
      return { ...access, identity: () => clock.advance(60_000).then(() => access.identity()) };
    },
  });
  const kinds = (): readonly string[] =>
    harness.diagnostics.flatMap((each) => (each.kind === 'backingOff' ? each.failure.kind : []));
  await harness.until('it is not trusted', () => kinds().includes('untrusted'));
  expect(harness.server.log).toEqual([]);
  await writeFile(trusted, certificate('ca'));
  await harness.settled();
});
