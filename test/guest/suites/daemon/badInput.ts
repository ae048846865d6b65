/** What cannot work: an error that says what to do, and nothing half done. */
import { manifests } from '../../../e2e/cluster.ts';
import type { Program } from '../../../e2e/support/program.ts';
import { IPVS_FLAGS, SHORT_SYNC_PERIOD } from '../../daemon/guestDaemon.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';
import { answerers } from '../../daemon/traffic.ts';

const API = '10.96.1.1';
const WORLD = manifests([{ name: 'api', ip: API, pods: 'ac' }]);

/** Wants a node on which nothing of ours is; what is served in the end is what the tests of tampering begin with. */
export const BAD_START = onStage('bad input', {
  'a set of ours that is of another type: it says so and tries again, until that is gone': async (stage) => {
    const address = '10.96.20.1';
    await stage.clear();
    await stage.node.run(['ipset', 'create', 'KUBE-CLUSTER-IP', 'hash:mac']);
    let program: Program | undefined;
    try {
      program = await stage.launch(ONE_OF_EACH_KIND, SHORT_SYNC_PERIOD);
      await program.says(
        /the set KUBE-CLUSTER-IP is there already and is of type hash:mac, not hash:ip,port/,
      );
      const { servers, sets, addresses, rules } = await stage.words();
      same(
        servers.filter((server) => !server.includes('[')),
        [],
      );
      same(
        sets.filter((set) => !set.startsWith('KUBE-6-')),
        ['KUBE-CLUSTER-IP hash:mac'],
      );
      same(addresses.includes(`${address}/32`), false);
      same(
        rules.filter((rule) => rule.startsWith('-A')),
        [],
      );
    } finally {
      await stage.node.run(['ipset', 'destroy', 'KUBE-CLUSTER-IP']);
    }
    await program.serves();
    await becomes(() => answerers(stage.client, address), 'pod-a pod-b pod-c');
  },
});

/** Ends what runs: before a test that starts it with other flags. */
export const BAD_SCHEDULER = onStage('bad input', {
  'a scheduler that the kernel lacks: it names the module, and ends before it writes': async (stage) => {
    await stage.daemon.end('SIGKILL');
    await endsUntouched(stage, [...IPVS_FLAGS, '--ipvs-scheduler=nosuch'], /ip_vs_nosuch/);
  },
});

export const BAD_INPUT = onStage('bad input', {
  'a link of another kind that takes the place of ours: it says so, and ours returns when that is gone':
    async (stage) => {
      await stage.serve(WORLD);
      await becomes(() => answerers(stage.client, API), 'pod-a pod-c');
      // Until it comes before the repair.
      const stdin = 'link delete kube-ipvs0\nlink add kube-ipvs0 type bridge\n';
      await becomes(async () => (await stage.node.exec(['ip', '-batch', '-'], { stdin })).exitCode, 0);
      try {
        await stage.daemon.program.says(/there is a link kube-ipvs0 that is a bridge, not a dummy/);
        const link = await stage.node.run(['ip', '-details', 'link', 'show', 'dev', 'kube-ipvs0']);
        same(/ (bridge) /.exec(link)?.[1], 'bridge');
      } finally {
        await stage.node.run(['ip', 'link', 'delete', 'kube-ipvs0']);
      }
      await becomes(() => stage.addresses(), [`${API}/32`]);
      await becomes(() => answerers(stage.client, API), 'pod-a pod-c');
    },

  'a load balancer at 127.0.0.1: loopback stays what it is, and the rest of the service is served': async (
    stage,
  ) => {
    const extra = 'status: {loadBalancer: {ingress: [{ip: 127.0.0.1}, {ip: 203.0.113.9}]}}';
    await stage.serve(manifests([{ name: 'api', ip: API, pods: 'ac', extra }]));
    await becomes(() => answerers(stage.client, '203.0.113.9'), 'pod-a pod-c');
    same(await stage.addresses(), [`${API}/32`, '203.0.113.9/32']);
    const serving = await stage.node.serve([{ protocol: 'tcp', port: 6443 }]);
    try {
      same(await answerers(stage.node, '127.0.0.1', 6443), 'node1');
      same(await answerers(stage.node, '127.0.0.1'), 'refused');
    } finally {
      await serving.close();
    }
  },
});

async function endsUntouched(stage: Stage, flags: readonly string[], message: RegExp): Promise<void> {
  const before = await stage.words();
  const program = stage.daemon.launch(flags);
  same((await program.ended()) === 0, false);
  same(message.test(program.log), true);
  same(await stage.words(), before);
}
