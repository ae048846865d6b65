/** A node that is switched from one mode to another and back: services go on, and no mode leaves anything to another. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host, Session } from '../../../../lab/host.ts';
import { Neighbour } from '../../../e2e/support/neighbour.ts';
import { manifests } from '../../../e2e/cluster.ts';
import { foreignOnly } from '../../daemon/foreign.ts';
import { kernelWords } from '../../daemon/kernelWords.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { NOTHING, onStage, type Stage } from '../../daemon/stage.ts';
import { answerers, asked } from '../../daemon/traffic.ts';

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

const SERVER = `TCP ${API}:80`;
/**
 * Ten times what a switch took when services were silent for its whole length: TCP asks again. What a switch breaks for
 * good, as a connection that was not masqueraded, stays silent however long one waits.
 */
const ASK_MS = 150_000;
/** The emulated machine has one processor, which Junction's start needs as well. */
const BETWEEN_MS = 300;

export const MODES = onStage('modes', {
  'from ipvs to iptables: no new connection is lost, and held ones live on': async (stage) => {
    const { failed, held } = await fromIpvs(stage);
    same(failed, []);
    await answers(stage);
    await stage.daemon.program.says('Kept virtual servers of the ipvs mode');
    same(await held.answers(), held.expected);
    same((await stage.server(SERVER)).match(/weight 0/g)?.length, 2);
  },

  'another start knows what waits for connections; when they have ended, all of ipvs is gone': async (
    stage,
  ) => {
    const { held } = await fromIpvs(stage);
    await stage.daemon.end('SIGKILL');
    await stage.daemon.start(IPTABLES_FLAGS);
    await stage.daemon.program.says('Kept virtual servers of the ipvs mode');
    same(await held.answers(), held.expected);
    switched.delete(stage);
    await held.close();
    await becomes(
      async () => {
        const { servers, sets, addresses } = await stage.words();
        return { servers, sets, addresses };
      },
      { servers: NOTHING.servers, sets: NOTHING.sets, addresses: NOTHING.addresses },
      PATIENCE_MS,
    );
    const { IPv4, IPv6 } = await chains(stage);
    same(
      [...IPv4, ...IPv6].filter((chain) => /IPVS|NODE-PORT$|SOURCE-RANGES|LOAD-BALANCER/.test(chain)),
      [],
    );
  },

  'and back: nothing is lost, held connections live on, and only chains of ipvs and the guard are there':
    async (stage) => {
      await stage.serve(WORLD, IPTABLES_FLAGS);
      await answers(stage);
      const held = await hold(stage);
      const neighbour = await Neighbour.start(stage.lab);
      let failed: readonly string[] = [];
      const packets = await neighbour.sendDuring(
        async () => {
          failed = await failedDuring(stage, () => stage.serve(WORLD));
        },
        { senders: 1, betweenMs: 100 },
      );
      same(failed, []);
      same({ isSending: packets.sent > 10, reached: packets.reached }, { isSending: true, reached: 0 });
      await answers(stage);
      same(await held.answers(), held.expected);
      await held.close();
      await becomes(() => chains(stage), { IPv4: IPVS_CHAINS, IPv6: IPVS_CHAINS });
      same(foreignOnly(await kernelWords(stage.node)), foreignOnly(stage.before));
      // The neighbour is heard where nothing guards, so its silence meant something.
      await stage.node.run(['iptables-legacy', '-D', 'INPUT', '-j', 'KUBE-FIREWALL']);
      await neighbour.getsThrough();
    },
});

/** The kernel counts a connection for ten seconds after its reset, and for two minutes after the last FIN that it missed. */
const PATIENCE_MS = 300_000;

interface Switched {
  readonly failed: readonly string[];
  readonly held: Held;
}

/** One switch for two tests: each start in the guest takes ten seconds. */
const switched = new WeakMap<Stage, Promise<Switched>>();

function fromIpvs(stage: Stage): Promise<Switched> {
  const done = switched.get(stage) ?? switchFromIpvs(stage);
  switched.set(stage, done);
  return done;
}

async function switchFromIpvs(stage: Stage): Promise<Switched> {
  await stage.serve(WORLD);
  await answers(stage);
  const held = await hold(stage);
  return { held, failed: await failedDuring(stage, () => stage.serve(WORLD, IPTABLES_FLAGS)) };
}

interface Held {
  readonly expected: readonly string[];
  answers(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Connections that stay open: from outside, from a pod, from the node itself, to both kinds of address. */
async function hold({ lab, client, node }: Stage): Promise<Held> {
  const dials = [
    [client, API, 80],
    [client, API, 80],
    [client, NODE, 30080],
    [lab.host('pod-b'), API, 80],
    [lab.host('pod-b'), 'fd00:96::1:1', 80],
    [node, API, 80],
  ] as const;
  const sessions: Session[] = [];
  for (const [from, address, port] of dials) sessions.push(await from.openSession(address, port));
  // With who asks whom, for whoever reads that one of them got no answer.
  const ask = (): Promise<readonly string[]> =>
    Promise.all(
      dials.map(async ([from, address, port], index) => {
        const session = sessions[index];
        return `${from.name} ${address} ${port}: ${session ? await asked(session) : 'never opened'}`;
      }),
    );
  const expected = await ask();
  return {
    expected,
    answers: ask,
    close: async () => {
      for (const session of sessions) await session.close();
    },
  };
}

/** New connections all the while; returns what became of those that got no answer. */
async function failedDuring(stage: Stage, work: () => Promise<void>): Promise<readonly string[]> {
  const end = new AbortController();
  const failed: string[] = [];
  const dial = async (from: Host, address: string, port: number): Promise<void> => {
    while (!end.signal.aborted) {
      const begun = performance.now();
      const outcome = await from.request('tcp', address, port, { timeoutMs: ASK_MS });
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      if (outcome.outcome !== 'answer')
        failed.push(`${from.name} ${address} ${outcome.outcome} after ${seconds} s`);
      await sleep(BETWEEN_MS);
    }
  };
  const asking = Promise.all([
    dial(stage.client, API, 80),
    dial(stage.client, NODE, 30080),
    dial(stage.lab.host('pod-b'), API, 80),
    dial(stage.node, API, 80),
  ]);
  try {
    await work();
  } finally {
    end.abort();
    await asking;
  }
  return failed;
}

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
