/** Chains and rules of other programs stay byte for byte as they are, under 1,000 random changes of both sides. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { seed } from '../../../scenarios/randomRun.ts';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';

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
  expect(await inside(namespace, `foreign-${family}`, source)).toEqual({
    changes: CHANGES,
    // Rules that are not there to be removed.
    refused: expect.any(Number),
    touched: [],
  });
});
