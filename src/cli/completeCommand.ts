/**
 * `junction __complete KIND PREFIX [WORDS…]`, for the scripts of `junction completion`: names from the running proxy, one a
 * line. Quietly nothing where none runs. WORDS are what the command line has so far.
 */
import { FLAGS } from '../config/table.ts';
import { apiPath, askJson } from './localApi.ts';
import type { Output } from './output.ts';

/** Whoever presses the key waits for it. */
const TIMEOUT_MS = 1000;

const NAME_KINDS = ['services', 'namespaces', 'nodes', 'sources', 'destinations'] as const;
export type NameKind = (typeof NAME_KINDS)[number];

export async function completeCommand(
  [kind = '', prefix = '', ...words]: readonly string[],
  output: Output,
): Promise<number> {
  const known = NAME_KINDS.find((each) => each === kind);
  if (known === undefined) return 0;
  const names = await namesOf(known, prefix, words).catch(() => []);
  // A shell takes each line for a word.
  for (const name of names) if (/^[\w./:-]+$/.test(name)) output.out(`${name}\n`);
  return 0;
}

async function namesOf(kind: NameKind, prefix: string, words: readonly string[]): Promise<readonly string[]> {
  const socket = wordAfter(words, ['--api-socket']) ?? defaultSocket();
  const namespace = wordAfter(words, ['--namespace', '-n']);
  const ask = (of: string, start: string): Promise<readonly string[]> =>
    askJson(socket, apiPath(['names'], { kind: of, prefix: start }), { timeoutMs: TIMEOUT_MS });
  /** With a namespace given, names go without it. */
  const services = async (start: string): Promise<readonly string[]> => {
    if (namespace === undefined) return ask('services', start);
    const names = await ask('services', `${namespace}/${start}`);
    return names.map((name) => name.slice(namespace.length + 1));
  };
  switch (kind) {
    case 'services':
      return services(prefix);
    case 'destinations': {
      const [, start] = /^svc\/(.*)$/s.exec(prefix) ?? [];
      if (start === undefined) return 'svc/'.startsWith(prefix) ? prefixed(await services('')) : [];
      return prefixed(await services(start));
    }
    case 'sources':
      return ['node', 'outside', 'pod/'].filter((each) => each.startsWith(prefix));
    default:
      return ask(kind, prefix);
  }
}

function prefixed(names: readonly string[]): readonly string[] {
  return names.map((name) => `svc/${name}`);
}

/** `--flag value`, `--flag=value`, and as bash has it: `--flag`, `=`, `value`. */
function wordAfter(words: readonly string[], flags: readonly string[]): string | undefined {
  for (const [index, word] of words.entries()) {
    const [name = '', ...value] = word.split('=');
    if (!flags.includes(name)) continue;
    if (value.length > 0) return value.join('=');
    const next = words[index + 1];
    return next === '=' ? words[index + 2] : next;
  }
  return undefined;
}

function defaultSocket(): string {
  const flag = FLAGS.find(({ name }) => name === 'api-socket');
  return typeof flag?.default === 'string' ? flag.default : '';
}
