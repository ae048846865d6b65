/** The client to the real programs, both variants, in a network namespace. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CanaryMonitor } from '../../../src/modes/iptables/canary.ts';
import { type ChainLook, IptablesClient } from '../../../src/modes/iptables/client.ts';
import type { Table } from '../../../src/modes/iptables/rules/rule.ts';
import { run } from '../../../src/system/processes.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const CASES = [
  { variant: 'nft', family: 'IPv4' },
  { variant: 'nft', family: 'IPv6' },
  { variant: 'legacy', family: 'IPv4' },
  { variant: 'legacy', family: 'IPv6' },
] as const;

describe.each(CASES)('$variant, $family', ({ variant, family }) => {
  let namespace: Namespace;
  let client: IptablesClient;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
    client = await openClient(namespace, variant, family);
  });
  afterEach(() => namespace.close());
  const jump = ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'];

  it('opens', async () => {
    expect(client.variant).toBe(variant);
    expect(await state(client, 'nat', 'POSTROUTING')).toBe('present');
    expect(client.features).toMatchObject({ wait: ['-w', '1'], restoreWait: ['-w', '1'] });
  });

  it('makes, sees, empties and deletes a chain', async () => {
    expect(await state(client, 'nat', 'KUBE-X')).toBe('absent');
    expect(await client.ensureChain('nat', 'KUBE-X')).toBe(false);
    expect(await client.ensureChain('nat', 'KUBE-X')).toBe(true);
    expect(await state(client, 'nat', 'KUBE-X')).toBe('present');
    expect(await client.flushChain('nat', 'KUBE-X')).toBe(true);
    expect(await client.deleteChain('nat', 'KUBE-X')).toBe(true);
    expect(await client.deleteChain('nat', 'KUBE-X')).toBe(false);
    expect(await client.flushChain('nat', 'KUBE-X')).toBe(false);
  });

  it('does not delete a chain that is jumped to', async () => {
    await client.ensureChain('nat', 'KUBE-SERVICES');
    await client.ensureRule('append', 'nat', 'PREROUTING', jump);
    await expect(client.deleteChain('nat', 'KUBE-SERVICES')).rejects.toMatchObject({
      code: 'IPTABLES_FAILED',
    });
  });

  it('makes, sees and deletes a rule', async () => {
    expect(await client.deleteRule('nat', 'PREROUTING', jump)).toBe(false); // its target is missing too
    await client.ensureChain('nat', 'KUBE-SERVICES');
    expect(await client.ensureRule('append', 'nat', 'PREROUTING', ['-j', 'ACCEPT'])).toBe(false);
    expect(await client.ensureRule('prepend', 'nat', 'PREROUTING', jump)).toBe(false);
    expect(await client.ensureRule('prepend', 'nat', 'PREROUTING', jump)).toBe(true);
    expect(await client.checkRule('nat', 'PREROUTING', jump)).toBe(true);
    expect((await client.save('nat')).split('\n').filter((line) => line.startsWith('-A'))).toEqual([
      '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      '-A PREROUTING -j ACCEPT',
    ]);
    expect(await client.deleteRule('nat', 'PREROUTING', jump)).toBe(true);
    expect(await client.deleteRule('nat', 'PREROUTING', jump)).toBe(false);
    expect(await client.checkRule('nat', 'PREROUTING', jump)).toBe(false);
    expect(await client.checkRule('nat', 'NO-SUCH-CHAIN', ['-j', 'ACCEPT'])).toBe(false);
  });

  it('restores without touching foreign rules, and reads counters', async () => {
    await client.ensureChain('nat', 'FOREIGN');
    await client.ensureRule('append', 'nat', 'FOREIGN', ['-j', 'ACCEPT']);
    await client.restore('nat', '*nat\n:KUBE-A - [7:70]\n[3:30] -A KUBE-A -j RETURN\nCOMMIT\n');
    await client.restore('nat', '*nat\n:KUBE-B - [0:0]\n-A KUBE-B -j KUBE-A\nCOMMIT\n');
    expect((await client.save('nat', { counters: true })).match(/^\[.*-A .*$/gm)).toEqual([
      '[0:0] -A FOREIGN -j ACCEPT',
      // ip6tables-nft-restore 1.8.9 drops the counters of rules.
      `${variant === 'nft' && family === 'IPv6' ? '[0:0]' : '[3:30]'} -A KUBE-A -j RETURN`,
      '[0:0] -A KUBE-B -j KUBE-A',
    ]);
  });

  it('restores only the table that is named, or all', async () => {
    const input = '*filter\n:KUBE-F - [0:0]\nCOMMIT\n*nat\n:KUBE-N - [0:0]\nCOMMIT\n';
    await client.restore('nat', input);
    expect(await state(client, 'filter', 'KUBE-F')).toBe('absent');
    await client.restore(undefined, input);
    expect(await state(client, 'filter', 'KUBE-F')).toBe('present');
  });

  const setup = '*nat\n:X - [0:0]\n-A X -j ACCEPT\n';
  it.each([
    { name: 'an unknown option', input: `${setup}-A X --bogus 1\nCOMMIT\n`, line: 4 },
    {
      name: 'a missing target',
      input: `${setup}-A X -j NOSUCH\n-A X -j RETURN\n-A X -j RETURN\nCOMMIT\n`,
      line: 4,
    },
    { name: 'a missing chain', input: `${setup}-A NOSUCH -j ACCEPT\nCOMMIT\n`, line: 4 },
    { name: 'a missing chain to delete', input: `${setup}-X NOSUCH\nCOMMIT\n`, line: 4 },
    { name: 'a chain in use', input: `${setup}:Y - [0:0]\n-A X -j Y\n-X Y\nCOMMIT\n`, line: 6 },
    { name: 'garbage', input: `${setup}garbage\nCOMMIT\n`, line: 4 },
    { name: 'no COMMIT', input: setup, line: 4 },
    { name: 'a bad table', input: '*bogus\nCOMMIT\n', line: 1 },
    // Legacy learns of it from the kernel, when everything is handed over.
    {
      name: 'a loop',
      input: '*nat\n:X - [0:0]\n:Y - [0:0]\n-A X -j Y\n-A Y -j X\n-A PREROUTING -j X\nCOMMIT\n',
      line: variant === 'legacy' ? 7 : 6,
    },
  ])('names the line of $name', async ({ input, line }) => {
    const failure: unknown = await client.restore(undefined, input).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'IPTABLES_RESTORE_FAILED', line });
    expect(failure).toHaveProperty(
      'detail',
      expect.stringContaining(`> ${line}: ${input.split('\n')[line - 1]}`),
    );
    expect(await state(client, 'nat', 'X')).toBe('absent');
  });

  it('notices a flush by its canary, not one that was only partly seen', async () => {
    const events: string[] = [];
    const monitor = new CanaryMonitor({
      client,
      intervalMs: 50,
      onFlushed: () => {
        events.push('flushed');
      },
      log: { info: (message) => events.push(message), warn: (message) => events.push(message) },
    });
    void monitor.start();
    while ((await state(client, 'filter', 'KUBE-PROXY-CANARY')) !== 'present') await sleep(10);
    await sleep(150);
    expect(events).toEqual([]);
    for (const table of ['mangle', 'nat', 'filter']) {
      await namespace.runner([client.programs.iptables, '-w', '5', '-t', table, '-F']);
      await namespace.runner([client.programs.iptables, '-w', '5', '-t', table, '-X']);
    }
    while (!events.includes('flushed')) await sleep(10);
    await monitor.stop();
    expect(events).toEqual([
      'IPTables canary deleted (table mangle, chain KUBE-PROXY-CANARY)',
      'Reloading after iptables flush',
      'flushed',
    ]);
    expect(await state(client, 'mangle', 'KUBE-PROXY-CANARY')).toBe('present');
  });
});

/** The nft variant takes no lock. */
describe.each(['IPv4', 'IPv6'] as const)('legacy, %s', (family) => {
  let namespace: Namespace;
  let client: IptablesClient;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
    client = await openClient(namespace, 'legacy', family);
  });
  afterEach(() => namespace.close());

  it('waits for the lock, then names its holder', async () => {
    const { lockPath } = namespace;
    await client.ensureChain('nat', 'X');
    const holder = spawn('flock', [lockPath, 'sleep', '300'], { stdio: 'ignore', detached: true });
    while ((await run(['flock', '-n', lockPath, 'true'])).code === 0) await sleep(5);
    const expected = {
      code: 'XTABLES_LOCK_HELD',
      message: `the xtables lock ${lockPath} is held by pid ${holder.pid} (flock)`,
    };
    const started = performance.now();
    await expect(client.ensureChain('nat', 'Y')).rejects.toMatchObject(expected);
    expect(performance.now() - started).toBeGreaterThan(900);
    await expect(client.restore('nat', '*nat\n:Y - [0:0]\nCOMMIT\n')).rejects.toMatchObject(expected);
    expect(await state(client, 'nat', 'X')).toBe('unknown');
    const patient = await openClient(namespace, 'legacy', family, 150);
    const waiting = patient.ensureChain('nat', 'Y');
    await sleep(100);
    process.kill(-Number(holder.pid));
    expect(await waiting).toBe(false);
  });
});

function openClient(
  { runner, lockPath }: Namespace,
  variant: 'nft' | 'legacy',
  family: 'IPv4' | 'IPv6',
  lockSeconds = 1,
): Promise<IptablesClient> {
  return IptablesClient.open({ family, variant, runner, lockPath, lockSeconds });
}

async function state(client: IptablesClient, table: Table, chain: string): Promise<ChainLook['state']> {
  return (await client.lookForChain(table, chain)).state;
}
