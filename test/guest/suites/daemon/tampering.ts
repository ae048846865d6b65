/** Another program takes away what we wrote: what the kernel notifies of is repaired at once, the rest within a sync period. */
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { IN_KERNEL } from '../../daemon/oneOfEachKindInKernel.ts';
import { SHORT_SYNC_PERIOD } from '../../daemon/guestDaemon.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';
import { answerers } from '../../daemon/traffic.ts';

const API = '10.96.20.1';
const EVERYBODY = 'pod-a pod-b pod-c';

export const TAMPERING = onStage('tampering', {
  'what the tools show is what kube-proxy leaves, and the device is down': async (stage) => {
    const { servers, sets, addresses } = await stage.undisturbed(SHORT_SYNC_PERIOD);
    same({ servers, sets, addresses }, IN_KERNEL);
    const link = await stage.node.run(['ip', '-details', 'link', 'show', 'dev', 'kube-ipvs0']);
    same(/<(.*)> .* state (\w+)[^]* (dummy)/.exec(link)?.slice(1), ['BROADCAST,NOARP', 'DOWN', 'dummy']);
  },

  'the device deleted': async (stage) => {
    const whole = await started(stage);
    const from = stage.daemon.log.length;
    await becomes(async () => stage.daemon.log.includes('fullSync=true', from), true);
    same(repairsOf(stage, '', from), false); // everything was read back, and it is as we left it
    await stage.node.run(['ip', 'link', 'delete', 'kube-ipvs0']);
    await becomes(() => stage.addresses(), whole.addresses);
    same(await answerers(stage.client, API), EVERYBODY);
    await becomes(async () => repairsOf(stage, 'link kube-ipvs0', from), true);
  },

  'the device set up and down, after which the kernel has forgotten that its addresses are local': async (
    stage,
  ) => {
    const whole = await started(stage);
    await stage.node.run(['ip', 'link', 'set', 'kube-ipvs0', 'up']);
    await stage.node.run(['ip', 'link', 'set', 'kube-ipvs0', 'down']);
    await becomes(() => answerers(stage.client, API), EVERYBODY);
    await becomes(() => stage.addresses(), whole.addresses);
    await becomes(() => answerers(stage.lab.host('pod-b'), 'fd00:96::20'), 'pod-a pod-c');
  },

  'virtual servers, endpoints, weights, entries of sets, rules: mended when everything is looked at': async (
    stage,
  ) => {
    const whole = await started(stage);
    await stage.node.run(['ipvsadm', '-D', '-t', `${API}:80`]);
    await stage.node.run([
      'ipvsadm',
      '-e',
      '-t',
      '10.96.20.4:8080',
      '-r',
      '10.244.1.12:8080',
      '-m',
      '-w',
      '0',
    ]);
    await stage.node.run(['ipvsadm', '-d', '-t', '198.51.100.24:8080', '-r', '10.244.1.12:8080']);
    await stage.node.run(['ipset', 'flush', 'KUBE-CLUSTER-IP']);
    await stage.node.run(['iptables-legacy', '-t', 'nat', '-F', 'KUBE-SERVICES']);
    await stage.node.run(['ip6tables-legacy', '-F', 'KUBE-IPVS-FILTER']);
    // That is a matter of time too; but of this the kernel tells.
    await stage.node.run(['ip', 'address', 'delete', `${API}/32`, 'dev', 'kube-ipvs0']);
    await stage.node.run(['ip', 'address', 'add', '10.96.99.99/32', 'dev', 'kube-ipvs0']);
    await stage.node.run(['ip', 'address', 'add', 'fd00:96::99/128', 'dev', 'kube-ipvs0']);
    await becomes(() => stage.words(), whole);
    same(await answerers(stage.client, API), EVERYBODY);
  },

  'a virtual server deleted: the next change of its service brings it back': async (stage) => {
    await started(stage);
    await stage.node.run(['ipvsadm', '-D', '-t', `${API}:80`]);
    await stage.daemon.apply(
      ONE_OF_EACH_KIND.replace(
        "- {addresses: ['10.244.1.12'], nodeName: node1, ",
        "- {addresses: ['10.244.2.12'], nodeName: node2, ",
      ),
    );
    await becomes(
      () => stage.server(`TCP ${API}:80`),
      `TCP ${API}:80 rr -> 10.244.1.11:8080, 10.244.2.11:8080, 10.244.2.12:8080`,
    );
    same(await answerers(stage.client, API), 'pod-a pod-c pod-d');
  },
});

/** Whether a line of the log, at the default verbosity, tells of a repair of this object. */
function repairsOf({ daemon }: Stage, object: string, from: number): boolean {
  return daemon.log
    .slice(from)
    .split('\n')
    .some((line) => line.includes('Another program changed our rules; repaired') && line.includes(object));
}

async function started(stage: Stage): ReturnType<Stage['words']> {
  await stage.serve(ONE_OF_EACH_KIND, SHORT_SYNC_PERIOD);
  await becomes(() => answerers(stage.client, API), EVERYBODY);
  return stage.words();
}
