/** Chains that are encoded as they are compiled: the kernel then has what `iptables-nft-restore` would have left. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { chainName } from '../rules/harness.ts';
import { LAYOUT_NAMES } from '../rules/layoutNames.ts';
import type { ColdStart, WayToWrite } from './support/coldStart.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

const TIMEOUT_MS = 60_000;

/** In two ways, one after the other. `drafts` is how many there were of the second. */
async function starts(
  layout: string,
  ways: readonly [WayToWrite, WayToWrite],
  commands: readonly string[] = [],
): Promise<{ readonly one: ColdStart; readonly other: ColdStart; readonly drafts: number }> {
  const source = `
    import { coldStart } from './test/modes/iptables/netlink/support/coldStart.ts';
    const found = [];
    for (const way of ${JSON.stringify(ways)})
      found.push(await coldStart('${layout}', way, ${JSON.stringify(commands)}));
    console.log(JSON.stringify(found));`;
  const [one, other] = (await inside(namespace, 'draft', source)) as readonly [ColdStart, ColdStart];
  return { one: { ...one, drafts: 0 }, other: { ...other, drafts: 0 }, drafts: other.drafts };
}

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  it('the same tables, and the same counts', { timeout: TIMEOUT_MS }, async () => {
    const { one, other, drafts } = await starts(layout, ['restores', 'drafts']);
    expect(drafts).toBeGreaterThan(3);
    expect(other).toEqual(one);
    expect(other.refused).toEqual([]);
  });

  it('a service that the kernel refuses is found, and all others are served', {
    timeout: TIMEOUT_MS,
  }, async () => {
    // Nothing may jump to a base chain.
    const endpoint = chainName('SEP', 'shop/api', '10.244.0.10:8080');
    const commands = [
      'add table ip nat',
      `add chain ip nat ${endpoint} { type nat hook prerouting priority -90 ; }`,
    ];
    const { one, other } = await starts(layout, ['steps', 'drafts'], commands);
    expect(other.refused).toEqual(['shop/api/TCP']);
    expect(other).toEqual(one);
  });
});
