/** A restart, with the record of what the process before it wrote and without: the table ends as a fresh start makes it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { manifests } from './cluster.ts';
import { Daemon } from './daemon.ts';
import { ourTables } from './support/nftTable.ts';
import { ourRules } from './support/rules.ts';
import { answerers } from './support/traffic.ts';

const WEB = { name: 'web', ip: '10.96.0.1', ip6: 'fd00:96::1', nodePort: 30_080 };
const STICKY = { name: 'sticky', ip: '10.96.0.2', extra: '  sessionAffinity: ClientIP', pods: 'ac' };
const GONE = { name: 'gone', ip: '10.96.0.8', pods: 'abcd' };
const BEFORE = manifests([{ ...WEB, pods: 'ac' }, STICKY, GONE]);
/** One is gone, one is new, one has other endpoints. */
const AFTER = manifests([{ ...WEB, pods: 'bd' }, STICKY, { name: 'new', ip: '10.96.0.9', pods: 'a' }]);

const MODES = [
  {
    flags: ['--proxy-mode=nftables'],
    written: ourTables,
    damage: 'nft delete element ip junction service-ips { 10.96.0.1 }',
  },
  {
    flags: ['--proxy-mode=iptables', '--iptables-variant=nft'],
    written: (node: Host) => ourRules(node, 'iptables-nft-save'),
    damage: 'iptables-nft -t nat -F KUBE-SERVICES',
  },
] as const;

describe.each(MODES)('a restart, $flags', ({ flags, written, damage }) => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const run = (command: string): Promise<string> => node().run(command.split(' '));

  test.each([
    ['with it, after another program changed something', true, () => run(damage)],
    ['with a broken one', false, (file: string) => writeFile(file, 'nothing')],
  ] as const)('%s', async (_, isUsed, meanwhile) => {
    const directory = await mkdtemp(join(tmpdir(), 'junction-record-'));
    const daemon = await Daemon.create(node(), ...flags, `--state-dir=${directory}`);
    onTestFinished(async () => {
      await daemon.close();
      await rm(directory, { recursive: true });
      await run('nft flush ruleset');
    });
    await daemon.write(AFTER);
    await daemon.start();
    const fresh = await written(node());
    await daemon.apply(BEFORE);
    const session = await lab().host('client').openSession(WEB.ip, 80);
    await daemon.end('SIGTERM');
    const from = daemon.log.length;
    await meanwhile(join(directory, 'written.bin'));
    await daemon.write(AFTER);
    await daemon.start();
    expect(/from the record.* ipFamily="IPv4"/.test(daemon.log.slice(from))).toBe(isUsed);
    expect(await written(node())).toBe(fresh);
    expect(await answerers(lab().host('client'), WEB.ip)).toBe('pod-b pod-d');
    expect((await session.send()).outcome).toBe('answer');
    await session.close();
  });
});
