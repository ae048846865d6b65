/** Every kind of rule, and random ones, as `iptables-nft-restore` writes them and as they are encoded: the same bytes, and back the same rule. */
import { beforeEach, describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { numRuns, seed } from '../../../support/randomCases.ts';
import { requireNamespaces } from '../../../system/support/namespace.ts';
import { compareInside } from './support/compareInside.ts';

beforeEach((context) => requireNamespaces(context));

describe.each(FAMILIES)('%s', (family) => {
  it('is byte for byte what the kernel shows of a restore', async () => {
    const { rules, differences } = await compareInside(family, { dialect: '1.8.9', numRuns, seed });
    expect(differences).toEqual([]);
    expect(rules).toBeGreaterThan(2 * numRuns);
  });
});
