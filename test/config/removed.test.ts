/** Settings that a version took away: accepted and ignored, with one warning each. */
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { main } from '../../src/cli/main.ts';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { decodeFile } from '../../src/config/decodeFile.ts';
import { setAt } from '../../src/config/table.ts';
import { REMOVED_SETTINGS, type RemovedSetting } from '../../src/config/removed.ts';
import { HEADER, load } from './given.ts';

const SETTINGS: readonly RemovedSetting[] = [
  { flag: 'lantern', isBoolean: true, field: 'junction.lantern', since: '0.3.0', reason: 'it is day' },
  { flag: 'lantern-oil', since: '0.3.0', reason: 'there is no lantern' },
];
const LANTERN = 'is ignored: it is day. It will be an error in 0.4.';

function parse(...argv: readonly string[]) {
  const parsed = parseCommandLine(argv, undefined, [], 0, SETTINGS);
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
  return parsed.value;
}

describe('on the command line', () => {
  test.each([
    [['--lantern', '--v=3']],
    [['--lantern=false', '--v=3']],
    [['--lantern', '--lantern=true', '--v', '3']],
  ])('%j: one warning, and the other flags count', (argv) => {
    const { removed, values } = parse(...argv);
    expect(removed).toEqual([{ severity: 'warning', message: `--lantern ${LANTERN}` }]);
    expect(values.get('v')).toBe(3);
  });

  test.each([[['--lantern-oil', 'whale', '--v=3']], [['--lantern_oil=whale', '--v=3']]])(
    '%j: its value is ignored with it',
    (argv) => {
      const { removed, values } = parse(...argv);
      expect(removed.map(({ message }) => message)).toEqual([
        '--lantern-oil is ignored: there is no lantern. It will be an error in 0.4.',
      ]);
      expect([...values]).toEqual([['v', 3]]);
    },
  );

  test('no value: it is ignored as well', () => {
    expect(parse('--lantern-oil').removed).toHaveLength(1);
  });
});

test('in a file: one warning, whatever it says, and no word of an unknown field', () => {
  const decode = (lantern: unknown) =>
    decodeFile(stringify({ ...HEADER, junction: { lantern, holdPorts: true } }), 'file', SETTINGS);
  for (const lantern of [true, 'text', null, { inner: [1] }]) {
    const decoded = decode(lantern);
    if (!decoded.ok) throw new Error(decoded.problems.join('\n'));
    expect(decoded.value.notes).toEqual([{ severity: 'warning', message: `junction.lantern ${LANTERN}` }]);
    expect([...decoded.value.values]).toEqual([['junction.holdPorts', true]]);
  }
});

describe.each(REMOVED_SETTINGS.map((each) => [each.flag ?? each.field, each] as const))(
  '%s',
  (_, removed) => {
    const { flag, field, reason } = removed;

    test('starts a proxy, with one warning for each place', () => {
      const file: Record<string, unknown> = { ...HEADER };
      if (field !== undefined) setAt(file, field, 'old');
      const flags = flag === undefined ? [] : [`--${flag}=old`];
      const written = [...(flag === undefined ? [] : [`--${flag}`]), ...(field === undefined ? [] : [field])];
      const messages = load(flags, stringify(file)).notes.map(({ message }) => message);
      for (const name of written)
        expect(messages).toContainEqual(`${name} is ignored: ${reason}. It will be an error in 0.4.`);
      expect(messages.join('\n')).not.toMatch(/unknown|lenient/);
    });

    test.runIf(flag !== undefined)('runs another command, with a warning', async () => {
      let errors = '';
      const write = (): void => {};
      const output = { out: write, painted: write, err: (text: string): void => void (errors += text) };
      expect(await main(['version', `--${flag}=old`], output)).toBe(0);
      expect(errors).toBe(`warning: --${flag} is ignored: ${reason}. It will be an error in 0.4.\n`);
    });
  },
);
