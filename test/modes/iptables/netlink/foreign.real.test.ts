/** Chains and rules of other programs stay byte for byte as they are, under 1,000 random changes of both sides. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { inside } from '../../../system/support/inside.ts';
import type { ForeignOutcome } from './support/foreignChanges.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { seed } from '../../../support/randomCases.ts';

const CHANGES = 500;

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

it.each(FAMILIES)('%s', { timeout: 600_000 }, async (family) => {
  const source = `
    import { changeInTurns } from './test/modes/iptables/netlink/support/foreignChanges.ts';
    console.log(JSON.stringify(await changeInTurns('${family}', ${CHANGES}, ${seed})));`;
  const outcome = (await inside(namespace, `foreign-${family}`, source)) as ForeignOutcome;
  expect(outcome).toMatchObject({ changes: CHANGES, touched: [] });
  // Rules that are not there cannot be removed.
  expect(outcome.refused).toBeLessThan(CHANGES / 4);
});
