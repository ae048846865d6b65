/** What the tools show of one service of each kind. */
import { SHORT_SYNC_PERIOD } from '../../daemon/guestDaemon.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { IN_KERNEL } from '../../daemon/oneOfEachKindInKernel.ts';
import { onStage } from '../../daemon/stage.ts';

export const OPERATORS_VIEW = onStage('what operators see', {
  'ipvsadm has a virtual server for each address and port, and for each node port on each address of the node':
    async (stage) => {
      await stage.serve(ONE_OF_EACH_KIND, SHORT_SYNC_PERIOD);
      await becomes(async () => (await stage.words()).servers, IN_KERNEL.servers);
    },

  'ipset has all sets of both families, filled or empty': async (stage) => {
    await stage.serve(ONE_OF_EACH_KIND, SHORT_SYNC_PERIOD);
    await becomes(async () => (await stage.words()).sets, IN_KERNEL.sets);
  },

  'kube-ipvs0 is a dummy that is down, with the addresses of services and no others': async (stage) => {
    await stage.serve(ONE_OF_EACH_KIND, SHORT_SYNC_PERIOD);
    await becomes(() => stage.addresses(), IN_KERNEL.addresses);
    const link = await stage.node.run(['ip', '-details', 'link', 'show', 'dev', 'kube-ipvs0']);
    same(/<(.*)> .* state (\w+)[^]* (dummy)/.exec(link)?.slice(1), ['BROADCAST,NOARP', 'DOWN', 'dummy']);
  },

  "iptables has kube-proxy's chains, and one rule more for what the node sends to a load balancer": async (
    stage,
  ) => {
    await stage.serve(ONE_OF_EACH_KIND, SHORT_SYNC_PERIOD);
    await becomes(async () => (await stage.words()).rules, IN_KERNEL.rules);
    await becomes(async () => (await stage.words()).rules6, IN_KERNEL.rules6);
  },
});
