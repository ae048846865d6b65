/** Keys that do something everywhere, and what says which. */
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { go } from '../route.ts';
import { type ShortcutAction, ShortcutKeys, SHORTCUTS } from '../shortcuts.ts';

const KEY = 'junction-shortcuts';

export function ShortcutHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [areOn, setAreOn] = useState(() => localStorage.getItem(KEY) !== 'off');
  const open = (): void => dialog.current?.showModal();
  useEffect(() => {
    if (!areOn) return;
    const keys = new ShortcutKeys();
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
      const action = keys.press(event.key, event.timeStamp);
      if (!action) return;
      event.preventDefault();
      run(action, open);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, [areOn]);
  return (
    <>
      <button
        type="button"
        class="round"
        title="Keyboard shortcuts"
        aria-label="Keyboard shortcuts"
        onClick={open}
      >
        ?
      </button>
      <dialog ref={dialog} class="dialog" aria-labelledby="shortcuts-title">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <dl class="keys">
          {SHORTCUTS.map(({ keys, meaning }) => (
            <Line key={meaning} keys={keys} meaning={meaning} />
          ))}
          <Line keys={['↑', '↓']} meaning="In a table: the row above, below" />
          <Line keys={['Enter']} meaning="In a table: open the row" />
          <Line keys={['c']} meaning="In a table: copy the row's first address" />
        </dl>
        <p>
          <label class="check">
            <input
              type="checkbox"
              checked={areOn}
              onChange={(event) => {
                localStorage.setItem(KEY, event.currentTarget.checked ? 'on' : 'off');
                setAreOn(event.currentTarget.checked);
              }}
            />{' '}
            Keys without Ctrl or Alt do something
          </label>
        </p>
        <form method="dialog">
          <button type="submit" class="primary">
            Close
          </button>
        </form>
      </dialog>
    </>
  );
}

function Line({ keys, meaning }: { readonly keys: readonly string[]; readonly meaning: string }) {
  return (
    <>
      <dt>
        {keys.map((key, index) => (
          <Fragment key={key}>
            {index > 0 && ' '}
            <kbd>{key}</kbd>
          </Fragment>
        ))}
      </dt>
      <dd>{meaning}</dd>
    </>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null
  );
}

function run(action: ShortcutAction, openHelp: () => void): void {
  switch (action.kind) {
    case 'go':
      return go(action.address);
    case 'help':
      return openHelp();
    case 'search':
      return searchHere();
  }
}

/** The table of services may have to be loaded first. */
const PATIENCE_MS = 5000;

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
