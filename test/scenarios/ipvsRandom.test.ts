/** Random clusters: sets, virtual servers and rules of the IPVS mode do what `decide` says. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/plan/types.ts';
import { FakeIpvsNode, walkedIpvs } from './ipvsWalk.ts';
import { cluster, settings } from './randomCluster.ts';
import { changes, disagreementsWith, family, startProxy, syncAll, tellChange, TIMEOUT } from './randomRun.ts';
import { numRuns, seed } from '../support/randomCases.ts';

function disagreements(plan: Plan, node: FakeIpvsNode): readonly string[] {
  const { snapshot } = node;
  return disagreementsWith(plan, 'ipvs', (subject) => walkedIpvs(snapshot, plan, subject));
}

describe(`seed ${seed}`, () => {
  test('the kernel does what decide says', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, settings, cluster, async (ofFamily, view, objects) => {
        const node = new FakeIpvsNode(ofFamily);
        const { plan } = await startProxy(
          { family: ofFamily, settings: view, cluster: objects },
          await node.proxier(),
        );
        expect(disagreements(plan, node)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });

  test('after any changes too', { timeout: TIMEOUT }, async () => {
    await fc.assert(
      fc.asyncProperty(family, settings, cluster, changes, async (ofFamily, view, objects, rounds) => {
        const node = new FakeIpvsNode(ofFamily);
        let now = objects;
        const proxy = await startProxy(
          { family: ofFamily, settings: view, cluster: now },
          await node.proxier(),
        );
        for (const round of rounds) {
          for (const each of round) now = tellChange(proxy, now, each);
          await syncAll(proxy);
        }
        expect(disagreements(proxy.plan, node)).toEqual([]);
      }),
      { seed, numRuns },
    );
  });
});
