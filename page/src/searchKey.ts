/** The key / goes to the search. */
import { go } from './route.ts';

/** The table of services may have to be loaded first. */
const PATIENCE_MS = 5000;

export function listenForSearchKey(): void {
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) return;
    event.preventDefault();
    searchHere();
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null
  );
}

/** The view's own search, or that of the services. */
function searchHere(): void {
  if (focusSearch()) return;
  go('/services');
  const end = performance.now() + PATIENCE_MS;
  const again = (now: number): void => {
    if (!focusSearch() && now < end) requestAnimationFrame(again);
  };
  requestAnimationFrame(again);
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]');
  field?.focus();
  field?.select();
  return field !== null;
}
