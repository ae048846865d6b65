import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseIp } from '../../../../src/model/ip.ts';
import { AddressCounts } from '../../../../src/modes/nftables/rules/addressCounts.ts';

const ADDRESSES = ['10.96.0.1', '10.96.0.2', '10.96.0.3'].flatMap((text) => parseIp(text) ?? []);
const SETS = ['cluster-ips', 'service-ips'];

test('changes lead from what was there to what is there, for any order of uses', () => {
  const use = fc.record({
    set: fc.constantFrom(...SETS),
    address: fc.constantFrom(...ADDRESSES),
    isAdded: fc.boolean(),
    isTaken: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(use, { maxLength: 60 }), (uses) => {
      const counts = new AddressCounts();
      const expected = new Map<string, number>();
      const kernel = new Set<string>();
      const write = (): void => {
        const { removes, adds } = counts.takeChanges();
        for (const { set, key } of removes) expect(kernel.delete(`${set} ${key.address}`)).toBe(true);
        for (const { set, key } of adds) kernel.add(`${set} ${key.address}`);
      };
      for (const { set, address, isAdded, isTaken } of uses) {
        const id = `${set} ${address}`;
        const before = expected.get(id) ?? 0;
        if (!isAdded && before === 0) continue;
        counts.count(set, address, isAdded ? 1 : -1);
        expected.set(id, before + (isAdded ? 1 : -1));
        if (isTaken) write();
      }
      write();
      const used = [...expected].filter(([, count]) => count > 0).map(([id]) => id);
      expect([...kernel].sort()).toEqual(used.sort());
      expect(Array.from(counts.elements(), ({ set, key }) => `${set} ${key.address}`).sort()).toEqual(used);
    }),
  );
});
