/** What `iptables-restore` is sent when a service changes: the layout `current`, on a kernel in memory. */
import { Harness } from '../../test/modes/iptables/rules/harness.ts';

const API = 'shop/api 10.96.0.10 http:80';
const API_ENDPOINTS = 'shop/api-1 of api http:8080 | 10.244.1.11 | 10.244.2.11';
const SEARCH = 'shop/search 10.96.0.80 http:80';
const SEARCH_ENDPOINTS = 'shop/search-1 of search http:8080 | 10.244.1.12';

/** Returns the text of each restore of the last sync. */
async function lastRestores(...syncs: readonly (readonly string[])[]): Promise<string> {
  const harness = new Harness();
  for (const lines of syncs) await harness.sync(...lines);
  return harness.kernel.restores.map(({ text }) => text).join('');
}

export const CHANGES: Readonly<Record<string, () => Promise<string>>> = {
  'change-endpoint-removed': () => lastRestores([API, `${API_ENDPOINTS} | 10.244.2.12`], [API_ENDPOINTS]),
  'change-service-added': () => lastRestores([API, API_ENDPOINTS], [SEARCH, SEARCH_ENDPOINTS]),
  'change-no-endpoints': () => lastRestores([SEARCH, SEARCH_ENDPOINTS], [`${SEARCH_ENDPOINTS} unready`]),
};
