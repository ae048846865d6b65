/**
 * Ends: by a clean-up, after which nothing is left; and without warning at any moment, after which the next start finds
 * what there is, and makes of it what a first start would.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { manifests } from '../../../e2e/cluster.ts';
import { foreignOnly } from '../../daemon/foreign.ts';
import { kernelWords } from '../../daemon/kernelWords.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { NOTHING, onStage } from '../../daemon/stage.ts';
import { answerers, asked, sessionTo } from '../../daemon/traffic.ts';
import { LIMITED } from './draining.ts';

const API = '10.96.20.1';
const CHANGE_DELAY_MS = 150;

/** Most of it goes, some of it stays, and something else comes. */
const CHANGED = `${ONE_OF_EACH_KIND.replaceAll("'10.244.1.12'", "'10.244.2.12'").replaceAll('203.0.113.23', '203.0.113.24').replaceAll('10.96.20.2', '10.96.20.12')}---
${manifests([{ name: 'more', ip: '10.96.1.1', nodePort: 30600, pods: 'abcd' }])}`;

const CLEAN_UP = onStage('clean-up', {
  'nothing of ours is left, and everything of others': async (stage) => {
    // As it runs already.
    await stage.serve(CHANGED, LIMITED);
    same((await stage.server('TCP 10.96.1.1:80')) !== '', true);
    await stage.clear();
    same(await stage.words(), NOTHING);
    same(foreignOnly(await kernelWords(stage.node)), foreignOnly(stage.before));
  },
});

/** At writes of a start: test/contract/steps/restarts.steps. */
const KILL = onStage('kill -9', {
  'during a change: the next start ends there too, with all weights 1 and open connections unbroken': async (
    stage,
  ) => {
    const undisturbed = await stage.undisturbed();
    await stage.serve(ONE_OF_EACH_KIND);
    await becomes(() => answerers(stage.client, API), 'pod-a pod-b pod-c');
    const session = await sessionTo('pod-a', stage.client, API);
    await stage.daemon.write(CHANGED);
    await sleep(CHANGE_DELAY_MS);
    await stage.daemon.end('SIGKILL');
    same(await asked(session), 'pod-a');
    await stage.node.run(['ipvsadm', '-e', '-t', `${API}:80`, '-r', '10.244.1.11:8080', '-m', '-w', '0']);
    await stage.serve(ONE_OF_EACH_KIND);
    same(await stage.words(), undisturbed);
    same(await asked(session), 'pod-a');
    await session.close();
  },
});

export const ENDS = { ...CLEAN_UP, ...KILL };
