/** Who has an address: after any changes, the same as a look through the whole plan. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Ip } from '../../src/model/ip.ts';
import { AddressIndex } from '../../src/plan/addresses.ts';
import type { Frontend, ServicePortPlan } from '../../src/plan/types.ts';
import { ip } from '../scenarios/scenario.ts';

const ADDRESSES: readonly Ip[] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map(ip);
const frontends = fc.array(fc.constantFrom(...ADDRESSES, undefined), { maxLength: 4 });
const change = fc.record({
  id: fc.constantFrom('a', 'b', 'c'),
  addresses: fc.option(frontends, { nil: undefined }),
});

function planOf(
  addresses: readonly (Ip | undefined)[] | undefined,
): Pick<ServicePortPlan, 'frontends'> | undefined {
  return (
    addresses && { frontends: addresses.map((address, index) => ({ address, port: index }) as Frontend) }
  );
}

test('the index is what a look through all of them finds', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
      const index = new AddressIndex();
      const now = new Map<string, readonly (Ip | undefined)[]>();
      for (const { id, addresses } of changes) {
        index.replace(id, planOf(now.get(id)), planOf(addresses));
        if (addresses) now.set(id, addresses);
        else now.delete(id);
        for (const address of ADDRESSES)
          expect([...index.at(address)].sort()).toEqual(
            [...now]
              .filter(([, own]) => own.includes(address))
              .map(([each]) => each)
              .sort(),
          );
      }
    }),
  );
});
