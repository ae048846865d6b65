/** Where each entry of the history was scrolled to: back means back to the same lines. */
const KEY = 'junction-scroll';
/** A view may have to ask before it is as long as it was. */
const PATIENCE_MS = 5000;

let positions: Record<string, number> = {};
let isRestoring = false;

/** Of this entry of the history. */
function entryId(): string {
  const state: unknown = history.state;
  if (typeof state === 'object' && state !== null && 'entry' in state && typeof state.entry === 'string')
    return state.entry;
  const entry = newEntry();
  history.replaceState(entry, '');
  return entry.entry;
}

export function newEntry(): { readonly entry: string } {
  return { entry: Math.random().toString(36).slice(2) };
}

export function keepScrollPositions(): void {
  history.scrollRestoration = 'manual';
  const kept = sessionStorage.getItem(KEY);
  if (kept !== null) {
    sessionStorage.removeItem(KEY);
    positions = JSON.parse(kept) as Record<string, number>;
    restoreScroll();
  }
  addEventListener('scroll', noteScroll, { passive: true });
  addEventListener('pagehide', () => sessionStorage.setItem(KEY, JSON.stringify(positions)));
}

/** Also before an entry is left: the event of a scroll comes with the next frame. */
export function noteScroll(): void {
  if (!isRestoring) positions[entryId()] = scrollY;
}

/** Waits until the view is long enough, unless somebody scrolls meanwhile. */
export function restoreScroll(): void {
  const wanted = positions[entryId()] ?? 0;
  isRestoring = true;
  const tryIt = (): void => {
    scrollTo(0, wanted);
    if (Math.abs(scrollY - wanted) < 2) end();
  };
  const observer = new ResizeObserver(tryIt);
  const timer = setTimeout(end, PATIENCE_MS);
  function end(): void {
    isRestoring = false;
    observer.disconnect();
    clearTimeout(timer);
    removeEventListener('wheel', end);
    removeEventListener('keydown', end);
    removeEventListener('pointerdown', end);
    removeEventListener('popstate', end, true);
  }
  addEventListener('wheel', end, { passive: true });
  addEventListener('keydown', end);
  addEventListener('pointerdown', end);
  addEventListener('popstate', end, true);
  observer.observe(document.documentElement);
  tryIt();
}
