/** Steps written by netlink: the kernel then has what `iptables-nft-restore` would have left, and refuses the same. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

describe.each(FAMILIES)('%s', (family) => {
  it('random steps leave the same tables as restores', async () => {
    const source = `
      import fc from 'fast-check';
      import { bothWriters } from './test/modes/iptables/netlink/support/bothWriters.ts';
      import { randomSteps } from './test/modes/iptables/netlink/support/randomSteps.ts';
      import { printStep } from './src/modes/iptables/rules/edit.ts';
      let refused = 0, taken = 0;
      const property = fc.asyncProperty(randomSteps('${family}'), async (steps) => {
        const { restored, sent } = await bothWriters('${family}', steps);
        refused += sent.refused.filter(Boolean).length;
        taken += sent.refused.filter((each) => !each).length;
        if (JSON.stringify(restored) !== JSON.stringify(sent))
          throw new Error(steps.map(printStep).join('') + JSON.stringify({ restored, sent }, null, 1));
      });
      const { failed, error, errorInstance } = await fc.check(property, { numRuns: 12 });
      console.log(JSON.stringify({ failed, error: errorInstance?.message ?? error, some: refused > 0 && taken > 0 }));`;
    expect(await inside(namespace, `writer-random-${family}`, source)).toEqual({
      failed: false,
      error: null,
      some: true,
    });
  }, 240_000);
});
