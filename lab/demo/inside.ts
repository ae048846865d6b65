/** Where this process of the demo runs: as the user started it, in a user namespace, or in a guest kernel. */
const INSIDE = 'JUNCTION_DEMO_INSIDE';
const OWNER = 'JUNCTION_DEMO_OWNER';
const TERMINAL = 'JUNCTION_DEMO_TERMINAL';
const USERS_PATH = 'JUNCTION_DEMO_PATH';

type Inside = 'user-namespace' | 'guest';

/** The terminal that shows what a guest writes. */
export interface SurroundingTerminal {
  readonly isTTY: boolean;
  readonly columns?: number | undefined;
  readonly hasKeyboard: boolean;
}

export function isInUserNamespace(): boolean {
  return process.env[INSIDE] === ('user-namespace' satisfies Inside);
}

export function isInGuest(): boolean {
  return process.env[INSIDE] === ('guest' satisfies Inside);
}

/** For the process in the user namespace: it must not run on without the one that started it. */
export function userNamespaceEnvironment(): Readonly<Record<string, string>> {
  return {
    [INSIDE]: 'user-namespace' satisfies Inside,
    [OWNER]: String(process.pid),
    [USERS_PATH]: process.env['PATH'] ?? '',
  };
}

export function guestEnvironment(terminal: SurroundingTerminal): Readonly<Record<string, string>> {
  const passed = ['NO_COLOR', 'TERM'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    [INSIDE]: 'guest' satisfies Inside,
    [TERMINAL]: JSON.stringify(terminal),
    ...Object.fromEntries(passed),
  };
}

/** The kernel signals the death of a parent only to a child that has asked for it before. */
export function hasLostOwner(): boolean {
  const owner = process.env[OWNER];
  return isInUserNamespace() && owner !== undefined && String(process.ppid) !== owner;
}

/** Where the user's own shell looks for programs. */
export function usersPath(): string {
  return process.env[USERS_PATH] ?? process.env['PATH'] ?? '';
}

export function surroundingTerminal(): SurroundingTerminal {
  const text = process.env[TERMINAL];
  return text === undefined
    ? { isTTY: false, hasKeyboard: false }
    : (JSON.parse(text) as SurroundingTerminal);
}

/** In a guest the output is a file, which the host copies to its terminal. */
export function takeOverTerminal(): void {
  if (!isInGuest()) return;
  const { isTTY, columns } = surroundingTerminal();
  Object.defineProperty(process.stdout, 'isTTY', { value: isTTY });
  Object.defineProperty(process.stdout, 'columns', { value: columns });
}
