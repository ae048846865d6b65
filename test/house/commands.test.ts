/** Commands of Junction that a page shows exist, with each of their flags. */
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { FLAGS } from '../../src/config/table.ts';
import { PAGES } from './pages.ts';

interface Shown {
  readonly page: string;
  readonly command: string;
  readonly flags: readonly string[];
}

/** `junction plan --manifests …`, up to a pipe, a comment or the end of the quotation. */
const COMMAND = /(?<!\bip6?|\bkubectl|\bdaemonset)(?:^|[\s/`])junction ((?:[a-z]+|--)[^\n`|&#]*)/g;

const shown: readonly Shown[] = PAGES.flatMap(({ path, text }) => {
  const code = [
    ...[...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block),
    ...[...text.matchAll(/`([^`\n]+)`/g)].map(([quoted]) => quoted),
  ].join('\n');
  return [...code.replaceAll('\\\n', ' ').matchAll(COMMAND)].flatMap(([, words = '']) => {
    const [first = ''] = words.split(' ');
    const flags = [...words.matchAll(/(?<=^|\s)--([a-z][a-z-]+)/g)].map(([, name = '']) => name);
    // A directory: `deploy/chart/junction --namespace …`; a name: `helm install junction deploy/…`.
    if (first.includes('/') || flags.includes('namespace')) return [];
    return [{ page: path, command: first.startsWith('--') ? 'run' : first, flags }];
  });
});

function hasFlag(command: string, name: string): boolean {
  const { ownFlags = [], uses } = COMMANDS.find((each) => each.name === command) ?? {};
  if (ownFlags.some((flag) => flag.name === name)) return true;
  return FLAGS.some((flag) => flag.name === name) && (uses === undefined || uses.includes(name));
}

describe('commands on pages', () => {
  test('there are some', () => expect(shown.length).toBeGreaterThan(40));

  test.each(shown)('$page: junction $command $flags', ({ command, flags }) => {
    expect(COMMANDS.map(({ name }): string => name)).toContain(command);
    expect(flags.filter((name) => !hasFlag(command, name))).toEqual([]);
  });
});
