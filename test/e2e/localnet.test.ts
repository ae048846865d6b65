/**
 * CVE-2020-8558: node ports on 127.0.0.1 need route_localnet, which would let neighbours reach whatever listens there.
 * A neighbour asks all the time, through every way into the iptables mode and out of it.
 */
import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually, FLAGS } from './daemon.ts';
import { PROGRAM, Program } from './support/program.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './world.ts';

const PORT = 7777;
const LOCALNET = 'net/ipv4/conf/all/route_localnet';
const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', nodePort: 30_080, pods: 'ac' }]);

/** What listens on the node's loopback address alone; it says so for every packet that reaches it. */
const LISTENER = `const socket = require('node:dgram').createSocket('udp4');
socket.on('message', () => console.log('reached')).bind(${PORT}, '127.0.0.1', () => console.log('listening'));`;

describe.each(['nft', 'legacy'])('a neighbour and 127.0.0.1, iptables-%s', (variant) => {
  const lab = useLab();
  let heard = '';
  const daemonOf = useInLab(async () => {
    const node = lab().host('node1');
    const client = lab().host('client');
    await node.sysctl({ [LOCALNET]: '0' });
    const listener = node.spawn([process.execPath, '-e', LISTENER], { stdio: ['ignore', 'pipe', 'inherit'] });
    heard = '';
    listener.stdout?.on('data', (text: Buffer) => (heard += text.toString()));
    await eventually('a listener', () => heard.includes('listening'));
    // What a hostile neighbour does: 127.0.0.1 is behind the node.
    for (const range of ['127.0.0.0/8', '127.0.0.1/32'])
      await client.run(['ip', 'route', 'del', 'local', range, 'table', 'local']);
    await client.run(['ip', 'route', 'add', '127.0.0.1/32', 'via', '192.0.2.1', 'src', '192.0.2.10']);
    return Daemon.create(node, `--iptables-variant=${variant}`);
  });

  /** Answers would be lost on the way back, as they may be for an attacker: what counts is what the listener hears. */
  const send = async (): Promise<void> => {
    const options = { timeoutMs: 20, source: '192.0.2.10' };
    await lab().host('client').request('udp', '127.0.0.1', PORT, options);
  };
  const reached = (): number => heard.split('reached').length - 1;

  /** Returns how many of the neighbour's packets got through while the work was done, and how many it sent. */
  async function sentDuring(work: () => Promise<void>): Promise<{ sent: number; reached: number }> {
    const end = new AbortController();
    const before = reached();
    let sent = 0;
    const sending = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (; !end.signal.aborted; sent++) await send();
      }),
    );
    try {
      await work();
    } finally {
      end.abort();
      await sending;
    }
    return { sent, reached: reached() - before };
  }

  const localnet = async (): Promise<string> =>
    (
      await lab()
        .host('node1')
        .run(['cat', `/proc/sys/${LOCALNET}`])
    ).trim();

  test('never meet while route_localnet is on, whatever we do', async () => {
    const daemon = daemonOf();
    const node = lab().host('node1');
    await daemon.write(WORLD);
    await node.sysctl({ [LOCALNET]: '1' });
    await eventually('a packet, where nobody guards', async () => {
      await send();
      return reached() > 0;
    });
    await node.sysctl({ [LOCALNET]: '0' });

    const packets = await sentDuring(async () => {
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
      for (const flags of [
        ['--proxy-mode=nftables'],
        ['--proxy-mode=iptables', '--iptables-localhost-nodeports=false'],
        ['--proxy-mode=iptables', '--iptables-layout=classic'],
        ['--proxy-mode=nftables'],
      ]) {
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

    const last = await sentDuring(async () => {
      expect(await daemon.cleanup()).toContain('route_localnet is on');
      await node.sysctl({ [LOCALNET]: '0' });
      await daemon.cleanup();
    });
    expect(last.reached).toBe(0);
    expect(await node.run([`iptables-${variant}-save`])).not.toContain('KUBE-');
  }, 120_000);
});
