/** What `iptables-restore` is sent when a service changes: the layout `current`, on a kernel in memory. */
import { dataplaneOf } from '../../src/modes/dataplane.ts';
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { iptablesMode } from '../../test/contract/modes.ts';
import { Cluster } from '../../test/plan/cluster.ts';
import { node1Addresses } from '../../test/scenarios/scenario.ts';
import { FakeIptables } from '../../test/scenarios/fakeIptables.ts';

const API = 'shop/api 10.96.0.10 http:80';
const API_ENDPOINTS = 'shop/api-1 of api http:8080 | 10.244.1.11 | 10.244.2.11';
const SEARCH = 'shop/search 10.96.0.80 http:80';
const SEARCH_ENDPOINTS = 'shop/search-1 of search http:8080 | 10.244.1.12';

/** Returns the text of each restore of the last change. */
async function lastRestores(first: readonly string[], change: readonly string[]): Promise<string> {
  const iptables = new FakeIptables();
  const restores: string[] = [];
  const cluster = new Cluster();
  const client = await IptablesClient.open({
    family: 'IPv4',
    variant: 'nft',
    runner: (argv, options = {}) => {
      if (argv[0].endsWith('-restore')) restores.push(options.stdin ?? '');
      return iptables.runner(argv, options);
    },
  });
  const dataplane = dataplaneOf(
    iptablesMode({ client, layout: 'current', nodeIps: () => node1Addresses('IPv4') }),
  );
  cluster.tell(...first);
  await dataplane.apply(cluster.planner, cluster.takeDirty());
  restores.length = 0;
  cluster.tell(...change);
  await dataplane.apply(cluster.planner, cluster.takeDirty());
  return restores.join('');
}

export const CHANGES: Readonly<Record<string, () => Promise<string>>> = {
  'change-endpoint-removed': () => lastRestores([API, `${API_ENDPOINTS} | 10.244.2.12`], [API_ENDPOINTS]),
  'change-service-added': () => lastRestores([API, API_ENDPOINTS], [SEARCH, SEARCH_ENDPOINTS]),
  'change-no-endpoints': () => lastRestores([SEARCH, SEARCH_ENDPOINTS], [`${SEARCH_ENDPOINTS} unready`]),
};
