import { expect, test } from 'vitest';
import {
  EMPTY_FRAGMENT,
  type Fragment,
  type SharedRule,
} from '../../../../src/modes/iptables/rules/fragment.ts';
import { Difference } from '../../../../src/modes/iptables/rules/edit.ts';

/** How often the rules of a service port with so many addresses are looked at when one of its endpoints changes. */
function looksAt(count: number): number {
  let looks = 0;
  const shared = Array.from(
    { length: count },
    (_, index): SharedRule => ({
      table: 'nat',
      get chain() {
        looks++;
        return 'KUBE-SERVICES';
      },
      rule: { matches: [{ kind: 'destinationPort', port: index }], target: { kind: 'accept' } },
    }),
  );
  const fragment: Fragment = { ...EMPTY_FRAGMENT, shared };
  const difference = new Difference();
  difference.add({ owner: 'x/s/TCP', before: fragment, after: fragment });
  expect(difference.steps()).toEqual([]);
  return looks;
}

test('a service with ten times as many addresses costs ten times as much', () => {
  expect(looksAt(10_000)).toBe(10 * looksAt(1000));
});
