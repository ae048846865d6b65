/** Addresses of views. What people want to share by a link is in the address. */
import { useEffect, useState } from 'preact/hooks';

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

const CHANGED = 'junction:route';

/** `replace`: no step of the back button, as while somebody types. */
export function go(address: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  dispatchEvent(new Event(CHANGED));
}

export function useRoute(): Route {
  const read = (): Route => parseRoute(location.pathname, location.search);
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const update = (): void => setRoute(read());
    addEventListener('popstate', update);
    addEventListener(CHANGED, update);
    return () => {
      removeEventListener('popstate', update);
      removeEventListener(CHANGED, update);
    };
  }, []);
  return route;
}

/** Links within the page load nothing; those with a key held down, and others, are the browser's. */
export function openLinksHere(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (!link || link.target !== '' || link.origin !== location.origin || link.hasAttribute('download')) return;
  if (link.pathname === location.pathname && link.search === location.search && link.hash !== '') return;
  event.preventDefault();
  go(link.pathname + link.search);
}
