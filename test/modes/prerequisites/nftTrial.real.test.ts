/** The trial table in the real kernel: what is wrong is refused, and nothing stays. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TableTrial } from '../../../src/modes/prerequisites/nftTrial.ts';
import { FAMILIES } from '../../../src/model/ip.ts';
import { inside, output } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const IMPORTS = `
  import { netlinkTrials } from './src/modes/prerequisites/netlinkTrials.ts';
  import { nftFeatures } from './src/modes/prerequisites/nftFeatures.ts';
  import { trialTable } from './src/modes/prerequisites/nftTrial.ts';
  const trial = async (family, change) => {
    const table = trialTable(nftFeatures(family), family);
    console.log(JSON.stringify(await netlinkTrials.tryTable(family, change(table, family))));
  };
`;

describe.each(FAMILIES)('%s', (family) => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  const tried = async (change: string): Promise<TableTrial> => {
    const source = `${IMPORTS} await trial('${family}', ${change});`;
    const trial = (await inside(namespace, 'nftTrial', source)) as TableTrial;
    expect(await output(namespace, 'nft', 'list', 'ruleset')).toBe('');
    return trial;
  };

  it('the whole is taken, and reads back as it was written', async () => {
    expect(await tried('(table) => table')).toEqual({ state: 'done', different: [] });
  });

  it('a rule that may not stand where it does is refused', async () => {
    const misplaced = `(_, family) => trialTable(
      nftFeatures(family).map((feature) => ({ ...feature, at: 'prerouting' })), family)`;
    expect(await tried(misplaced)).toEqual({ state: 'refused', reason: 'ENOTSUP' });
  });

  it('a rule that asks for a set that is not there is refused', async () => {
    expect(await tried('(table) => ({ ...table, sets: table.sets.slice(1), elements: [] })')).toEqual({
      state: 'refused',
      reason: 'ENOENT',
    });
  });
});
