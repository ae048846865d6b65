/** Tampering with rules in the real kernel, found beside syncs by digests, and repaired by the next one. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { chainName } from '../rules/harness.ts';
import { LAYOUT_NAMES } from '../rules/layoutNames.ts';
import type { Repair } from './support/verifiedRules.ts';

const API = chainName('SVC', 'shop/api');
const ENDPOINT = chainName('SEP', 'shop/api', '10.244.0.10:8080');
const OLD = chainName('SVC', 'old/one');

const TAMPERINGS: Readonly<Record<string, readonly string[]>> = {
  'a rule of a service is deleted': [`iptables-nft -t nat -D ${API} 1`],
  'a chain of an endpoint is empty': [`iptables-nft -t nat -F ${ENDPOINT}`],
  'a rule is added to a chain of a service': [`iptables-nft -t nat -A ${API} -j ACCEPT`],
  'a rule of nft is added to a chain of a service': [`nft insert rule ip nat ${API} ct state new accept`],
  'a rule of KUBE-SERVICES is deleted': ['iptables-nft -t nat -D KUBE-SERVICES 2'],
  'KUBE-SERVICES is empty': ['iptables-nft -t nat -F KUBE-SERVICES'],
  'a rule stands behind the last one': ['iptables-nft -t nat -A KUBE-SERVICES -s 9.9.9.9 -j ACCEPT'],
  'a rule of nft is in KUBE-SERVICES': ['nft insert rule ip nat KUBE-SERVICES ct state new accept'],
  'a rule with a match that we do not write is in KUBE-SERVICES': [
    'iptables-nft -t nat -I KUBE-SERVICES -m length --length 40:60 -j ACCEPT',
  ],
  'a fixed chain has one rule less': ['iptables-nft -D KUBE-FORWARD 1'],
  'a jump is deleted': ['iptables-nft -t nat -D PREROUTING 1'],
  'an old chain is there': [`iptables-nft -t nat -N ${OLD}`, `iptables-nft -t nat -A ${OLD} -j ${API}`],
  'the table is dormant': ['nft add table ip nat { flags dormant ; }'],
};

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

it.each(LAYOUT_NAMES)('layout %s', async (layout) => {
  const source = `
    import { repairs } from './test/modes/iptables/netlink/support/verifiedRules.ts';
    const tamperings = ${JSON.stringify([[], ...Object.values(TAMPERINGS)])};
    console.log(JSON.stringify(await repairs('${layout}', tamperings)));`;
  const [untouched, ...repaired] = (await inside(namespace, 'verification', source)) as readonly Repair[];
  expect(untouched).toMatchObject({ suspects: 0, repaired: [], differences: [], suspectsAfterwards: 0 });
  const outcomes = Object.keys(TAMPERINGS).map((name, index) => {
    const { suspects, repaired: objects, differences, suspectsAfterwards, kind } = repaired[index] ?? {};
    const isFound = suspects !== 0;
    const isRepaired = objects?.length !== 0;
    // A full sync would have repaired it, too.
    return [name, { isFound, isRepaired, differences, suspectsAfterwards, isFull: kind === 'full' }];
  });
  const expected = {
    isFound: true,
    isRepaired: true,
    differences: [],
    suspectsAfterwards: 0,
    isFull: false,
  };
  expect(Object.fromEntries(outcomes)).toEqual(
    Object.fromEntries(Object.keys(TAMPERINGS).map((name) => [name, expected])),
  );
});
