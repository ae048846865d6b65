/** The whole source against a server that asks who comes, over TLS. */
import { expect, it } from 'vitest';
import { certificate } from '../../support/apiServer/index.ts';
import { Machine } from './credentials/machine.ts';
import { type Harness, type HarnessOptions, startHarness } from './harness.ts';
import { SHOP, service } from './objects.ts';

const CA = '/etc/junction/ca.crt';
const TOKEN = '/etc/junction/token';

interface Secured extends Harness {
  readonly files: Map<string, string>;
  /** Why it was refused, so far. */
  readonly refusals: () => readonly string[];
}

async function start(
  user: object,
  files: Readonly<Record<string, string>>,
  options: HarnessOptions,
): Promise<Secured> {
  const known = new Map<string, string>(Object.entries({ [CA]: certificate('ca'), ...files }));
  const harness = await startHarness({
    objects: SHOP,
    certificate: 'server',
    ...options,
    access: ({ url }, clock) =>
      new Machine(clock, known).kubeconfig({ server: url, 'certificate-authority': CA }, user),
  });
  const refusals = (): readonly string[] =>
    harness.diagnostics.flatMap((each) =>
      each.kind === 'backingOff' ? `${each.failure.kind}: ${each.failure.hint}` : [],
    );
  return { ...harness, files: known, refusals };
}

it('a token that rotates while watches are open', async () => {
  const harness = await start({ tokenFile: TOKEN }, { [TOKEN]: 'first' }, { tokens: ['first'] });
  const { server, files } = harness;
  await harness.settled();
  const lists = server.count('stream');
  files.set(TOKEN, 'second');
  server.tokens.clear();
  server.tokens.add('second');
  server.dropConnections();
  server.put(service('new', { clusterIP: '10.96.0.20' }));
  await harness.settled();
  expect(server.count('stream')).toBe(lists);
});

it('a token that comes too late', async () => {
  const harness = await start({ tokenFile: TOKEN }, { [TOKEN]: 'wrong' }, { tokens: ['right'] });
  await harness.until('it is refused', () => harness.refusals().length > 2);
  expect(harness.refusals()[0]).toContain('unauthorized: The API server does not know these credentials');
  harness.files.set(TOKEN, 'right');
  await harness.settled();
});

it('a server whose certificate is not trusted is waited for', async () => {
  const harness = await start({}, { [CA]: certificate('otherCa') }, {});
  await harness.until('it is not trusted', () => harness.refusals().length > 0);
  expect(harness.refusals()[0]).toContain('untrusted');
  expect(harness.server.log).toEqual([]);
  harness.files.set(CA, certificate('ca'));
  await harness.settled();
});
