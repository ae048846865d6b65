/** What Junction asks of the API server, by the paths that the program itself has. */
import { eventsPath } from '../../src/telemetry/events/event.ts';
import { Interner } from '../../src/sources/api/interner.ts';
import { endpointSlices, oneNode, SERVICE_CIDRS, services } from '../../src/sources/api/resources.ts';

export interface ApiUse {
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

const interner = new Interner();
const WATCHED = [oneNode('node1'), services(interner), endpointSlices(interner), SERVICE_CIDRS];

export const API_USE: readonly ApiUse[] = [
  ...WATCHED.map(({ path }) => ({ ...resourceOf(path), verbs: ['list', 'watch'] })),
  // An event that was recorded is patched when it happens again; update is what other recorders fall back to.
  { ...resourceOf(eventsPath('default')), verbs: ['create', 'patch', 'update'] },
];

/** `/api/v1/services`, `/apis/events.k8s.io/v1/namespaces/default/events` */
export function resourceOf(path: string): Pick<ApiUse, 'group' | 'resource'> {
  const match = /^\/(?:api\/v\d\w*|apis\/([^/]+)\/v\d\w*)\/(?:namespaces\/[^/]+\/)?([a-z]+)$/.exec(path);
  if (!match) throw new Error(`${path} is no path of the API`);
  return { group: match[1] ?? '', resource: match[2] ?? '' };
}
