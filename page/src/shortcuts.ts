/** Keys that do something everywhere: which one means what. `g` waits for a second key. */
export type ShortcutAction =
  | { readonly kind: 'go'; readonly address: string }
  | { readonly kind: 'search' }
  | { readonly kind: 'help' };

interface Shortcut {
  readonly keys: readonly string[];
  readonly meaning: string;
  readonly action: ShortcutAction;
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: ['/'], meaning: 'Search', action: { kind: 'search' } },
  { keys: ['g', 's'], meaning: 'Services', action: { kind: 'go', address: '/services' } },
  { keys: ['g', 'p'], meaning: 'Packet', action: { kind: 'go', address: '/packet' } },
  { keys: ['g', 'y'], meaning: 'Syncs', action: { kind: 'go', address: '/syncs' } },
  { keys: ['g', 'n'], meaning: 'Node', action: { kind: 'go', address: '/node' } },
  { keys: ['?'], meaning: 'All shortcuts', action: { kind: 'help' } },
];

/** The second key comes within this time. */
const PAIR_MS = 1500;

export class ShortcutKeys {
  #first: { readonly key: string; readonly at: number } | undefined;

  /** `at`: milliseconds, of any clock. */
  press(key: string, at: number): ShortcutAction | undefined {
    const first = this.#first && at - this.#first.at <= PAIR_MS ? this.#first.key : undefined;
    this.#first = undefined;
    const pressed = first === undefined ? [key] : [first, key];
    const found = SHORTCUTS.find(({ keys }) => isSame(keys, pressed));
    if (found) return found.action;
    if (SHORTCUTS.some(({ keys }) => keys.length === 2 && keys[0] === key)) this.#first = { key, at };
    return undefined;
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index]);
}
