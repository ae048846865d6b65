/** Endpoints that are gone: their connections may end by themselves, and nobody new comes to them. */
import { manifests } from '../../../e2e/cluster.ts';
import { IPVS_FLAGS } from '../../daemon/guestDaemon.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';
import { answerers, asked, sessionTo } from '../../daemon/traffic.ts';

const API = '10.96.1.1';
const SERVER = `TCP ${API}:80`;
const A = '10.244.1.11:8080';
const C = '10.244.2.11:8080';
export const LIMITED = [...IPVS_FLAGS, '--ipvs-drain-limit=1s'];

export const DRAINING = onStage('draining', {
  'an open connection outlives its endpoint, which gets no other and goes when that has ended': async (
    stage,
  ) => {
    const pod = stage.lab.host('pod-b');
    await stage.serve(world('ac'));
    await becomes(() => answerers(pod, API), 'pod-a pod-c');
    const session = await sessionTo('pod-c', pod, API);
    await stage.serve(world('a'));
    await becomes(() => stage.server(SERVER), `${SERVER} rr -> ${A}, ${C} weight 0`);
    same(await answerers(pod, API), 'pod-a');
    same(await asked(session), 'pod-c');
    await session.close();
    // The kernel counts a connection for ten seconds after its reset.
    await becomes(async () => {
      await lookAgain(stage);
      return stage.server(SERVER);
    }, `${SERVER} rr -> ${A}`);
  },

  'an endpoint that returns gets connections again, and keeps the one that it had': async (stage) => {
    const pod = stage.lab.host('pod-b');
    await stage.serve(world('ac'));
    await becomes(() => answerers(pod, API), 'pod-a pod-c');
    const session = await sessionTo('pod-c', pod, API);
    await stage.serve(world('a'));
    await becomes(() => stage.server(SERVER), `${SERVER} rr -> ${A}, ${C} weight 0`);
    await stage.serve(world('ac'));
    await becomes(() => stage.server(SERVER), `${SERVER} rr -> ${A}, ${C}`);
    same(await answerers(pod, API), 'pod-a pod-c');
    same(await asked(session), 'pod-c');
    await session.close();
  },

  'a connection to an endpoint of a service that is scaled to nothing lives on, and new ones are refused':
    async (stage) => {
      const pod = stage.lab.host('pod-b');
      await stage.serve(world('a'));
      await becomes(() => answerers(pod, API), 'pod-a');
      const session = await sessionTo('pod-a', pod, API);
      await stage.serve(world(''));
      await becomes(() => answerers(pod, API), 'refused');
      same(await asked(session), 'pod-a');
      await session.close();
    },
});

export const DRAIN_LIMIT = onStage('draining', {
  'with a limit, connections that are still open then are cut': async (stage) => {
    const pod = stage.lab.host('pod-b');
    await stage.serve(world('ac'), LIMITED);
    await becomes(() => answerers(pod, API), 'pod-a pod-c');
    const session = await sessionTo('pod-c', pod, API);
    const other = await sessionTo('pod-a', pod, API);
    await stage.serve(world('a'), LIMITED);
    await becomes(() => stage.server(SERVER), `${SERVER} rr -> ${A}`);
    const cut = await session.send();
    if (cut.outcome === 'answer') throw new Error(`still answered by ${cut.reply.host}`);
    same(await asked(other), 'pod-a');
    await session.close();
    await other.close();
  },
});

function world(pods: string): string {
  return manifests([{ name: 'api', ip: API, pods }]);
}

/** A server's drained endpoints are looked at when another one joins them, so that nobody has to wait for the usual time. */
async function lookAgain(stage: Stage): Promise<void> {
  await stage.serve(world('ad'));
  await stage.serve(world('a'));
}
