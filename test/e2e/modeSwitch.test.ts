/** A node that changes its mode: services answer after each start, and what the mode before left goes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { HostName } from '../../lab/topology.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const WORLD = manifests([
  { name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080, pods: 'ac' },
  { name: 'empty', ip: '10.96.1.2', pods: '' },
]);

/** A firewall, a container runtime, kubelet. */
const FOREIGN = `*filter
:DOCKER-USER - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
-A INPUT -j KUBE-FIREWALL
-A FORWARD -j DOCKER-USER
-A OUTPUT -j KUBE-FIREWALL
-A DOCKER-USER -j RETURN
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
*nat
:CNI-HOSTPORT-DNAT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
COMMIT
*mangle
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
`;
/** Between two questions; starts need the processor as well. */
const BETWEEN_MS = 5;
const FOREIGN_TABLE = 'table inet firewall {\n\tchain input {\n\t\tip saddr 192.0.2.99 drop\n\t}\n}\n';

describe('modes, one after the other', () => {
  const lab = useLab();
  const world = useInLab(async () => {
    const node = lab().host('node1');
    await node.run(['iptables-nft-restore', '--noflush'], { stdin: FOREIGN });
    await node.run(['nft', '-f', '-'], { stdin: FOREIGN_TABLE });
    return { close: async () => {} };
  });

  /** Policies' counters go on counting; nothing else may differ. */
  async function iptables(): Promise<readonly string[]> {
    const text = await lab().host('node1').run(['iptables-nft-save']);
    return text
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .map((line) => line.replace(/\[\d+:\d+\]$/, '[0:0]'));
  }

  const tables = async (): Promise<readonly string[]> =>
    (await lab().host('node1').run(['nft', 'list', 'tables'])).split('\n').filter((line) => line !== '');

  async function expectService(): Promise<void> {
    const from = (name: HostName) => lab().host(name);
    await expectAnswers(from('pod-b'), '10.96.1.1', 'pod-a pod-c');
    await expectAnswers(from('node1'), '10.96.1.1', 'pod-a pod-c');
    await expectAnswers(from('pod-b'), 'fd00:96::1', 'pod-a pod-c');
    await expectAnswers(from('client'), '192.168.100.2', 'pod-a pod-c', 30_080);
    await expectAnswers(from('pod-b'), '10.96.1.2', 'refused');
  }

  /** Asks all the time; answers what went wrong, once it is told to stop. */
  function keepAsking(): () => Promise<readonly string[]> {
    const end = new AbortController();
    const troubles: string[] = [];
    const ask = async (from: HostName, address: string, port: number): Promise<void> => {
      while (!end.signal.aborted) {
        const { outcome } = await lab().host(from).request('tcp', address, port);
        if (outcome !== 'answer') troubles.push(`${from} ${address} ${outcome}`);
        await sleep(BETWEEN_MS);
      }
    };
    const all = Promise.all([ask('pod-b', '10.96.1.1', 80), ask('client', '192.168.100.2', 30_080)]);
    return async () => {
      end.abort();
      await all;
      return troubles;
    };
  }

  async function run(mode: string, work: (daemon: Daemon) => Promise<void>): Promise<void> {
    const daemon = await Daemon.create(lab().host('node1'), `--proxy-mode=${mode}`);
    try {
      await daemon.write(WORLD);
      await daemon.start();
      await expectService();
      await work(daemon);
      await expectService();
      expect(await daemon.end('SIGTERM')).toBe(0);
    } finally {
      await daemon.close();
    }
  }

  const removed = (what: string, daemon: Daemon): Promise<void> =>
    eventually(
      () => `${what}; it said:\n${daemon.log}`,
      () => daemon.log.includes(what),
    );

  test('iptables, nftables, iptables', async () => {
    world();
    const node = lab().host('node1');
    const before = await iptables();
    const foreign = await node.run(['nft', 'list', 'table', 'inet', 'firewall']);

    await run('iptables', async () => {
      expect((await iptables()).join('\n')).toContain('KUBE-SERVICES');
      expect((await tables()).filter((line) => line.includes('junction'))).toEqual([]);
    });

    const stopAsking = keepAsking();
    await node.run(['nft', 'add table ip kube-proxy; add chain ip kube-proxy services']);
    await run('nftables', async (daemon) => {
      await removed('"Removed the table that an nftables mode left" family="ip" table="kube-proxy"', daemon);
      for (const family of ['IPv4', 'IPv6'])
        await removed(`"Removed the rules that an iptables or ipvs mode left" ipFamily="${family}"`, daemon);
      expect(await iptables()).toEqual(before);
      expect(await node.run(['ip6tables-nft-save'])).not.toContain('KUBE-');
      expect((await tables()).filter((line) => /junction|kube-proxy/.test(line)).sort()).toEqual([
        'table ip junction-a',
        'table ip6 junction-a',
      ]);
    });

    await run('nftables', async (daemon) => {
      expect(daemon.log).not.toContain('Removed the');
    });

    await run('iptables', async (daemon) => {
      for (const family of ['ip', 'ip6'])
        await removed(
          `"Removed the table that an nftables mode left" family="${family}" table="junction-b"`,
          daemon,
        );
      expect((await tables()).filter((line) => line.includes('junction'))).toEqual([]);
    });

    expect(await stopAsking()).toEqual([]);
    expect(await node.run(['nft', 'list', 'table', 'inet', 'firewall'])).toBe(foreign);
  });

  test('what the ipvs mode left in iptables and ipset goes, the rules before the sets', async () => {
    const node = lab().host('node1');
    await node.run(['ipset', 'create', 'KUBE-CLUSTER-IP', 'hash:ip,port', 'family', 'inet']);
    await node.run(['ipset', 'create', 'mine', 'hash:ip']);
    await node.run(['iptables', '-t', 'nat', '-N', 'KUBE-SERVICES']).catch(() => '');
    const match = ['-m', 'set', '--match-set', 'KUBE-CLUSTER-IP', 'dst,dst', '-j', 'ACCEPT'];
    await node.run(['iptables', '-t', 'nat', '-A', 'KUBE-SERVICES', ...match]);
    await run('nftables', async (daemon) => {
      await removed('"Removed what the ipvs mode left"', daemon);
      expect(await node.run(['ipset', 'list', '-name'])).toBe('mine\n');
      expect((await iptables()).join('\n')).not.toContain('KUBE-SERVICES');
      expect(daemon.log).not.toContain('Cannot remove');
    });
  });
});
