import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readLine, type ServiceLine } from '../../page/src/views/services/line.ts';
import { Selector } from '../../page/src/views/services/selection.ts';
import { NO_CHOICE, type TableState } from '../../page/src/views/services/viewState.ts';

const LINES: readonly ServiceLine[] = [
  'shop/api\tClusterIP\t10.96.0.10\t\t80/TCP\t3/3 (1 here)\t\t\tok',
  'shop/cart\tNodePort\t10.96.0.40\t\t80:30040/TCP\t0/2\t\t\tno endpoints: http has no usable endpoint',
  'shop/dns\tClusterIP\t10.96.0.53,fd00:96::53\t\t53/UDP,53/TCP\t2/2\tinternal Local\t\tok',
  'shop/web\tLoadBalancer\t10.96.0.20\t203.0.113.10\t8080:30020/TCP\t9/9\texternal Local, internal Local\t\trefused: why',
].map(readLine);
/** By an address of their endpoints, as the proxy answers. */
const MATCHES = new Map([['10.244.1.', new Set(['shop/web', 'shop/api'])]]);

function found(state: Partial<TableState>): readonly string[] {
  const { lines } = new Selector().select(LINES, { ...NO_CHOICE, ...state }, MATCHES);
  return lines.map(({ service }) => service.slice('shop/'.length));
}

describe('services are found', () => {
  test.each<[state: Partial<TableState>, services: string]>([
    [{ search: '' }, 'api cart dns web'],
    [{ search: 'CART' }, 'cart'],
    [{ search: 'fd00:96::53' }, 'dns'],
    [{ search: '203.0.113.10:8080' }, 'web'],
    [{ search: '203.0.113.10:80' }, ''],
    [{ search: '[fd00:96::53]:53' }, 'dns'],
    [{ search: ':80' }, 'api cart web'],
    [{ search: ':80/' }, 'api cart'],
    [{ search: '53/udp' }, 'dns'],
    [{ search: 'shop 10.96 :30020' }, 'web'],
    [{ search: '<img onerror=alert(1)>' }, ''],
    [{ search: '10.244.1. web' }, 'web'],
    [{ search: '10.244.2.' }, ''],
    [{ states: ['refused', 'no endpoints'] }, 'cart web'],
    [{ policy: 'Cluster' }, 'api cart'],
    [{ policy: 'internal Local', states: ['ok'], type: 'ClusterIP', search: ':53' }, 'dns'],
    [{ isDescending: true }, 'web dns cart api'],
    [{ sort: 'endpoints' }, 'cart dns api web'],
    [{ sort: 'state', isDescending: true }, 'web cart api dns'],
    [{ problemsFirst: true, sort: 'type' }, 'web cart api dns'],
  ])('by %j', (state, services) => expect(found(state).join(' ')).toBe(services));

  test('key by key as by the whole', () => {
    const typed = fc.stringMatching(/^[a-z0-9 .:/]{0,12}$/);
    fc.assert(
      fc.property(fc.array(typed, { maxLength: 6 }), (searches) => {
        const selector = new Selector();
        for (const text of searches) {
          for (let length = 0; length <= text.length; length++) {
            const state = { ...NO_CHOICE, search: text.slice(0, length) };
            expect(selector.select(LINES, state, MATCHES)).toEqual(
              new Selector().select(LINES, state, MATCHES),
            );
          }
        }
      }),
    );
  });

  test('as many as the count beside a choice says', () => {
    const choices = fc.record({
      search: fc.constantFrom('', '10.96', ':80'),
      states: fc.subarray(['ok', 'refused', 'no endpoints']),
      type: fc.constantFrom('', 'ClusterIP', 'NodePort'),
      policy: fc.constantFrom('', 'Cluster', 'external Local'),
    });
    fc.assert(
      fc.property(choices, (choice) => {
        const { states, types, policies } = new Selector().select(
          LINES,
          { ...NO_CHOICE, ...choice },
          MATCHES,
        );
        for (const [value, count] of states)
          expect(found({ ...choice, states: [value] })).toHaveLength(count);
        for (const [type, count] of types) expect(found({ ...choice, type })).toHaveLength(count);
        for (const [policy, count] of policies) expect(found({ ...choice, policy })).toHaveLength(count);
      }),
    );
  });
});
