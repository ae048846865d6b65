/** A node that is switched from one mode to another and back: services go on, and no mode leaves anything to another. */
import { manifests } from '../../../e2e/world.ts';
import { foreignOnly } from '../../daemon/foreign.ts';
import { kernelWords } from '../../daemon/kernelWords.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { NOTHING, onStage, type Stage } from '../../daemon/stage.ts';
import { answerers } from '../../daemon/traffic.ts';

const IPTABLES_FLAGS = [
  '--proxy-mode=iptables',
  '--iptables-min-sync-period=100ms',
  '--iptables-sync-period=2s',
];
const API = '10.96.1.1';
const NODE = '192.168.100.2';
const WORLD = manifests([{ name: 'api', ip: API, ip6: 'fd00:96::1:1', nodePort: 30080, pods: 'ac' }]);

const IPVS_CHAINS = [
  ':KUBE-FORWARD',
  ':KUBE-IPVS-FILTER',
  ':KUBE-IPVS-OUT-FILTER',
  ':KUBE-NODE-PORT',
  ':KUBE-PROXY-FIREWALL',
  ':KUBE-SOURCE-RANGES-FIREWALL',
  ':KUBE-LOAD-BALANCER',
  ':KUBE-MARK-MASQ',
  ':KUBE-NODE-PORT',
  ':KUBE-POSTROUTING',
  ':KUBE-SERVICES',
];

export const MODES = onStage('modes', {
  'from ipvs to iptables: services answer, and device, virtual servers, sets and chains of ipvs are gone':
    async (stage) => {
      await stage.serve(WORLD);
      await answers(stage);
      await stage.serve(WORLD, IPTABLES_FLAGS);
      await answers(stage);
      await becomes(
        async () => {
          const { servers, sets, addresses } = await stage.words();
          return { servers, sets, addresses };
        },
        { servers: NOTHING.servers, sets: NOTHING.sets, addresses: NOTHING.addresses },
      );
      const { IPv4, IPv6 } = await chains(stage);
      same(
        [...IPv4, ...IPv6].filter((chain) => /IPVS|NODE-PORT$|SOURCE-RANGES|LOAD-BALANCER/.test(chain)),
        [],
      );
      await answers(stage);
    },

  'and back: services answer, and only chains of ipvs are there': async (stage) => {
    await stage.serve(WORLD, IPTABLES_FLAGS);
    await answers(stage);
    await stage.serve(WORLD);
    await answers(stage);
    await becomes(() => chains(stage), { IPv4: IPVS_CHAINS, IPv6: IPVS_CHAINS });
    same(foreignOnly(await kernelWords(stage.node)), foreignOnly(stage.before));
  },
});

async function answers(stage: Stage): Promise<void> {
  await becomes(() => answerers(stage.client, API), 'pod-a pod-c');
  await becomes(() => answerers(stage.client, NODE, 30080), 'pod-a pod-c');
  await becomes(() => answerers(stage.lab.host('pod-b'), 'fd00:96::1:1'), 'pod-a pod-c');
}

async function chains(stage: Stage): Promise<Readonly<Record<'IPv4' | 'IPv6', readonly string[]>>> {
  const { rules, rules6 } = await stage.words();
  // One is kubelet's as much as ours, and the other is empty: no packet is misled by them.
  const isChain = (line: string): boolean => line.startsWith(':') && !/KUBE-FIREWALL|CANARY/.test(line);
  return { IPv4: rules.filter(isChain), IPv6: rules6.filter(isChain) };
}
