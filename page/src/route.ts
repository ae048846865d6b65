/** Where the page is, and how one gets elsewhere. */
import { useEffect, useState } from 'preact/hooks';
import { parseRoute, placeOf, type Route } from './address.ts';

export { servicePath } from './address.ts';

const CHANGED = 'junction:route';
/** Browsers refuse more than some hundred changes of the address in half a minute. */
const TYPING_PAUSE_MS = 250;

let waiting: { readonly address: string; readonly timer: ReturnType<typeof setTimeout> } | undefined;

/** `replace`: no step of the back button. */
export function go(address: string, how: 'push' | 'replace' = 'push'): void {
  flush();
  if (how === 'push') {
    const before = placeOf(parseRoute(location.pathname, location.search));
    history.pushState(null, '', address);
    if (placeOf(parseRoute(location.pathname, location.search)) !== before) scrollTo(0, 0);
  } else history.replaceState(null, '', address);
  dispatchEvent(new Event(CHANGED));
}

/** While somebody types or moves: the address follows after a pause, and before anything else is gone to. */
export function replaceSoon(address: string): void {
  if (waiting) clearTimeout(waiting.timer);
  waiting = { address, timer: setTimeout(flush, TYPING_PAUSE_MS) };
}

function flush(): void {
  if (!waiting) return;
  clearTimeout(waiting.timer);
  history.replaceState(null, '', waiting.address);
  waiting = undefined;
}

function dropWaiting(): void {
  if (waiting) clearTimeout(waiting.timer);
  waiting = undefined;
}

let isBack = false;

/** The view that is shown was come to by the back or forward button. */
export function cameBack(): boolean {
  return isBack;
}

export function useRoute(): Route {
  const read = (): Route => parseRoute(location.pathname, location.search);
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const update = (): void => {
      isBack = false;
      setRoute(read());
    };
    const back = (): void => {
      dropWaiting();
      isBack = true;
      setRoute(read());
    };
    addEventListener('popstate', back);
    addEventListener(CHANGED, update);
    addEventListener('pagehide', flush);
    return () => {
      removeEventListener('popstate', back);
      removeEventListener(CHANGED, update);
      removeEventListener('pagehide', flush);
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
