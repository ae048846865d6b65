/**
 * CVE-2020-8558: node ports on 127.0.0.1 need route_localnet, which would let neighbours reach whatever listens there.
 * A neighbour asks all the time, through every way into the iptables mode and out of it.
 */
import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, FLAGS } from './daemon.ts';
import { Neighbour } from './support/neighbour.ts';
import { PROGRAM, Program } from './support/program.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const LOCALNET = 'net/ipv4/conf/all/route_localnet';
const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', nodePort: 30_080, pods: 'ac' }]);

const NFTABLES = ['--proxy-mode=nftables'];
/** One start after another. */
const WAYS = {
  nft: [
    NFTABLES,
    ['--proxy-mode=iptables', '--iptables-localhost-nodeports=false'],
    ['--proxy-mode=iptables', '--iptables-layout=classic'],
    NFTABLES,
  ],
  // The same rules, written by the other program.
  legacy: [NFTABLES],
} as const;

describe.each(['nft', 'legacy'] as const)('a neighbour and 127.0.0.1, iptables-%s', (variant) => {
  const lab = useLab();
  const setOf = useInLab(async () => {
    const node = lab().host('node1');
    await node.sysctl({ [LOCALNET]: '0' });
    const daemon = await Daemon.create(node, `--iptables-variant=${variant}`);
    return { daemon, neighbour: await Neighbour.start(lab()), close: () => daemon.close() };
  });

  const localnet = async (): Promise<string> =>
    (
      await lab()
        .host('node1')
        .run(['cat', `/proc/sys/${LOCALNET}`])
    ).trim();

  test('never meet while route_localnet is on, whatever we do', async () => {
    const { daemon, neighbour } = setOf();
    const node = lab().host('node1');
    await daemon.write(WORLD);
    await node.sysctl({ [LOCALNET]: '1' });
    await neighbour.getsThrough();
    await node.sysctl({ [LOCALNET]: '0' });

    const packets = await neighbour.sendDuring(async () => {
      const init = [
        '--init-only',
        '--manifests',
        daemon.manifests,
        ...FLAGS,
        `--iptables-variant=${variant}`,
      ];
      await node.run([PROGRAM, ...init]);
      expect(await localnet()).toBe('1');
      await daemon.start();
      await daemon.end('SIGKILL');
      await daemon.cleanup();
      expect(await node.run([`iptables-${variant}-save`])).not.toContain('KUBE-SERVICES');
      await daemon.start();
      await daemon.end('SIGTERM');
      for (const flags of WAYS[variant]) {
        const args = ['run', '--manifests', daemon.manifests, ...FLAGS, `--iptables-variant=${variant}`];
        const program = Program.start(node, [...args, ...flags], {});
        await program.serves();
        await program.end('SIGTERM');
      }
      expect(await node.run([`iptables-${variant}-save`])).not.toContain('KUBE-SERVICES');
      expect(await localnet()).toBe('1');
    });
    expect(packets.sent).toBeGreaterThan(100);
    expect(packets.reached).toBe(0);

    const last = await neighbour.sendDuring(async () => {
      expect(await daemon.cleanup()).toContain('route_localnet is on');
      await node.sysctl({ [LOCALNET]: '0' });
      await daemon.cleanup();
    });
    expect(last.reached).toBe(0);
    expect(await node.run([`iptables-${variant}-save`])).not.toContain('KUBE-');
  });
});
