/** What Junction says to what kube-proxy 1.36.4 was seen to take and to refuse (kubeProxyRefusals.yaml). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { loadConfig } from '../../src/config/load.ts';
import { validate } from '../../src/config/validate.ts';
import { FILE } from './given.ts';

/** A flag, several, or a file with or without flags. */
type Input = string | readonly string[] | { readonly args?: readonly string[]; readonly file: string };

interface Observed {
  readonly takes: readonly Input[];
  readonly refusesValue: readonly string[];
  readonly cannotDecode: readonly string[];
  readonly refuses: readonly Input[];
  readonly says: Readonly<Record<string, readonly Input[]>>;
}

const OBSERVED = parse(readFileSync(new URL('kubeProxyRefusals.yaml', import.meta.url), 'utf8')) as Observed;
const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

/** With the reason. What is not here is refused in the same words, or taken, by both. */
const DIFFERENT = new Map([
  ['--windows-service=x', 'kube-proxy has the flag in its Windows build only'],
  ['--enable-dsr=x', 'kube-proxy has the flag in its Windows build only'],
  ['--kube-api-qps=inf', 'kube-proxy fails later, when it writes its configuration'],
  ['--kube-api-qps=0x1p4', 'nobody writes requests per second in hexadecimal'],
  ['--healthz-bind-address= --healthz-bind-address=1.2.3.4', 'kube-proxy panics'],
  ['--feature-gates=Foo=true', 'unknown gates are a warning: their list changes with each version'],
  ['featureGates:\n  Foo: true\n', 'unknown gates are a warning'],
]);

const CASES = Object.entries(OBSERVED.says).flatMap(([says, inputs]) => casesOf(inputs, says));

function casesOf(inputs: readonly Input[], says = '') {
  return inputs.map(ofInput).flatMap((each) => (DIFFERENT.has(each.name) ? [] : [{ ...each, says }]));
}

function ofInput(input: Input) {
  const { args = [], file = '' } =
    typeof input === 'string' ? { args: [input] } : 'file' in input ? input : { args: input };
  return { name: [...args, ...(file === '' ? [] : [file])].join(' '), args, file };
}

function problemsOf({ args, file }: ReturnType<typeof ofInput>): readonly string[] {
  const extra = ['--write-config-to=/x', ...(file === '' ? [] : [`--config=${FILE}`])];
  const parsed = parseCommandLine([...extra, ...args]);
  if (!parsed.ok) return parsed.problems;
  const loaded = loadConfig(parsed.value, () => HEAD + file);
  return loaded.ok ? validate(loaded.value.config) : loaded.problems;
}

/** kube-proxy shows the problems of the first stage that has some, several of them in brackets. */
function asKubeProxySays(problems: readonly string[]): string | undefined {
  const [begin = ''] =
    /^(failed complete|initialize logging|failed validate): /.exec(problems[0] ?? '') ?? [];
  const texts = problems
    .filter((problem) => problem.startsWith(begin))
    .map((text) => text.slice(begin.length));
  return texts.length > 1 && begin !== '' ? `${begin}[${texts.join(', ')}]` : problems[0];
}

test.each(casesOf(OBSERVED.takes))('$name is taken', (each) => expect(problemsOf(each)).toEqual([]));

describe('refused as by kube-proxy', () => {
  test.each(CASES)('$name', ({ says, ...input }) => {
    const said = asKubeProxySays(problemsOf(input));
    if (says.endsWith('…')) expect(said?.startsWith(says.slice(0, -1))).toBe(true);
    else expect(said).toBe(says);
  });

  // Then follow plainer words than Go's.
  test.each(casesOf(OBSERVED.refusesValue))('$name', (each) => {
    const [, flag = '', value = ''] = /^--([^=]+)=(.*)$/s.exec(each.name) ?? [];
    const begin = `invalid argument ${JSON.stringify(value)} for "--${flag}" flag: `;
    expect(problemsOf(each)[0]?.slice(0, begin.length)).toBe(begin);
  });

  test.each(casesOf(OBSERVED.cannotDecode.map((file) => ({ file }))))('$file', (each) => {
    expect(problemsOf(each)[0]).toMatch(/^failed to decode: /);
  });

  test.each(casesOf(OBSERVED.refuses))('$name', (each) => expect(problemsOf(each)).not.toEqual([]));
});

test('every difference is one that was seen', () => {
  const { says, ...others } = OBSERVED;
  const seen = [...Object.values(others), ...Object.values(says)].flat().map((input) => ofInput(input).name);
  expect(seen).toEqual(expect.arrayContaining([...DIFFERENT.keys()]));
});
