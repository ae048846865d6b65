import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

/** What a busy machine has in the same tables: a firewall, a container runtime, a port mapper, an operator's own. */
const FOREIGN = `*filter
:DOCKER-USER - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:my-rules - [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "ssh; \\"quoted\\"" -j ACCEPT
-A FORWARD -j DOCKER-USER
-A DOCKER-USER -m limit --limit 5/min -j LOG --log-prefix "odd: "
-A DOCKER-USER -j RETURN
-A my-rules -s 192.0.2.99/32 -j DROP
COMMIT
*nat
:CNI-HOSTPORT-DNAT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 9000,9001 -j DNAT --to-destination 10.244.1.12:8080
-A POSTROUTING -s 172.31.0.0/16 ! -o eth0 -j MASQUERADE
COMMIT
*mangle
:KUBE-KUBELET-CANARY - [0:0]
-A PREROUTING -s 192.0.2.98/32 -j MARK --set-xmark 0x1/0xffffffff
COMMIT
`;

const NAMES = ['red', 'green', 'blue', 'white', 'black'];

/** A small fixed generator, so that a failure can be repeated. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

function randomWorld(next: (below: number) => number): readonly ServiceWords[] {
  return NAMES.filter(() => next(4) > 0).map((name, index) => ({
    name,
    ip: `10.96.2.${NAMES.indexOf(name) + 1}`,
    pods: [...'abcd'].filter(() => next(2) === 0).join(''),
    ...(next(2) === 0 && { nodePort: 30_100 + index, extra: '  externalTrafficPolicy: Local' }),
  }));
}

describe.each([
  ['nft', 'current'],
  ['legacy', 'current'],
  ['nft', 'classic'],
])('foreign rules, iptables-%s, layout %s', (variant, layout) => {
  const lab = useLab();
  const daemonOf = useInLab(async () => {
    const node = lab().host('node1');
    await node.run([`iptables-${variant}-restore`, '--noflush'], { stdin: FOREIGN });
    return Daemon.create(node, `--iptables-variant=${variant}`, `--iptables-layout=${layout}`);
  });

  /** Policies' counters go on counting; nothing else may differ. */
  async function save(): Promise<readonly string[]> {
    const text = await lab()
      .host('node1')
      .run([`iptables-${variant}-save`]);
    return text
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .map((line) => line.replace(/\[\d+:\d+\]$/, '[0:0]'));
  }

  const isForeign = (line: string): boolean =>
    line.includes('KUBE-KUBELET-CANARY') || !line.includes('KUBE-');

  test('stay as they are through a run, 100 random changes and a clean-up', async () => {
    const daemon = daemonOf();
    const next = numbers(20_260_101);
    const before = await save();
    await daemon.write(manifests(randomWorld(next)));
    await daemon.start();
    expect((await save()).filter(isForeign)).toEqual(before);

    for (let change = 0; change < 100; change++) await daemon.write(manifests(randomWorld(next)));
    const last = manifests([{ name: 'last', ip: '10.96.2.9', pods: 'ab' }]);
    await daemon.apply(last);
    expect([...new Set((await save()).join('\n').match(/shop\/\w+/g))]).toEqual(['shop/last']);
    expect((await save()).filter(isForeign)).toEqual(before);

    await daemon.end('SIGTERM');
    await daemon.cleanup();
    expect((await save()).filter((line) => !isKubeletShared(line))).toEqual(before);
  });
});

/** Where there is a kubelet, KUBE-FIREWALL stays: it is its chain as much as ours. */
function isKubeletShared(line: string): boolean {
  return line.includes('KUBE-FIREWALL') || line.includes('KUBE-MARK-DROP');
}
