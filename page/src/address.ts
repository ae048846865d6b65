/** Addresses of views, as text. What people want to share by a link is in the address. */
export type Route =
  | { readonly view: 'services'; readonly query: URLSearchParams }
  | { readonly view: 'service'; readonly service: string; readonly query: URLSearchParams }
  | { readonly view: 'packet'; readonly query: URLSearchParams }
  | { readonly view: 'syncs'; readonly query: URLSearchParams }
  | { readonly view: 'node'; readonly query: URLSearchParams }
  | { readonly view: 'unknown'; readonly query: URLSearchParams };

export function parseRoute(path: string, search: string): Route {
  const query = new URLSearchParams(search);
  const [view = '', ...names] = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode);
  if (names.length === 2 && view === 'services') return { view: 'service', service: names.join('/'), query };
  if (names.length > 0) return { view: 'unknown', query };
  switch (view) {
    case '':
    case 'services':
      return { view: 'services', query };
    case 'packet':
    case 'syncs':
    case 'node':
      return { view, query };
    default:
      return { view: 'unknown', query };
  }
}

/** `\0` is in no name. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '\0';
  }
}

export function servicePath(service: string): string {
  return `/services/${service.split('/').map(encodeURIComponent).join('/')}`;
}

export function packetPath(question: Readonly<Record<string, string>>): string {
  return `/packet?${new URLSearchParams(question)}`;
}

/** For the title of the tab. */
export function titleOf(route: Route): string {
  switch (route.view) {
    case 'service':
      return route.service;
    case 'unknown':
      return 'Not found';
    default:
      return route.view[0]?.toUpperCase() + route.view.slice(1);
  }
}

/** What is read from its beginning when one comes to it; a change of the query is none. */
export function placeOf(route: Route): string {
  return route.view === 'service' ? `service ${route.service}` : route.view;
}

/** `/v1/explain?from=…`: without what is undefined or empty. */
export function apiPath(
  parts: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, value);
  const path = `/v1/${parts.map(encodeURIComponent).join('/')}`;
  return search.size === 0 ? path : `${path}?${search}`;
}
