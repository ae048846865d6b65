/** The trial table in the real kernel: what is wrong is refused, and nothing stays. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NftTrial } from '../../../src/modes/nftables/trialTable.ts';
import { FAMILIES } from '../../../src/model/ip.ts';
import { inside, output } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const IMPORTS = `
  import { systemMachine } from './src/modes/prerequisites/machine.ts';
  import { trialTable } from './src/modes/nftables/trialTable.ts';
  const machine = systemMachine({ iptablesVariant: 'auto', sysctlRoot: undefined });
  const trial = async (family, change) => {
    console.log(JSON.stringify(await machine.tryTable(family, change(trialTable(family)))));
  };
`;

describe.each(FAMILIES)('%s', (family) => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  const tried = async (change: string): Promise<NftTrial> => {
    const source = `${IMPORTS} await trial('${family}', ${change});`;
    const trial = (await inside(namespace, 'nftTrial', source)) as NftTrial;
    expect(await output(namespace, 'nft', 'list', 'ruleset')).toBe('');
    return trial;
  };

  it('the whole is taken, and reads back as it was written', async () => {
    expect(await tried('(table) => table')).toEqual({ state: 'done', different: [] });
  });

  it('so is each piece by itself, and so are the chains without any', async () => {
    const source = `${IMPORTS}
      import { NFT_PIECES } from './src/modes/nftables/prerequisites.ts';
      const trials = { none: await machine.tryTable('${family}', trialTable('${family}', [])) };
      for (const { name } of NFT_PIECES)
        trials[name] = await machine.tryTable('${family}', trialTable('${family}', [name]));
      console.log(JSON.stringify(trials));`;
    const trials = await inside(namespace, 'nftPieces', source);
    for (const trial of Object.values(trials as Record<string, NftTrial>))
      expect(trial).toEqual({ state: 'done', different: [] });
    expect(Object.keys(trials as object)).toHaveLength(15);
  });

  it('a rule that may not stand where it does is refused', async () => {
    const misplaced = `({ chains, ...rest }) => ({ ...rest, chains: chains.map((chain) => ({
      ...chain, ...(chain.hook && { hook: { ...chain.hook, point: 'prerouting' } }) })) })`;
    expect(await tried(misplaced)).toEqual({ state: 'refused', reason: 'ENOTSUP' });
  });

  it('a rule that asks for a set that is not there is refused', async () => {
    expect(await tried('(table) => ({ ...table, sets: table.sets.slice(1), elements: [] })')).toEqual({
      state: 'refused',
      reason: 'ENOENT',
    });
  });
});
