/**
 * What kube-proxy 1.36.4 was seen to say to bad values of its flags and of its file (kubeProxyRefusals.jsonl, without `says`
 * where it took them), and what Junction says to the same.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { loadConfig } from '../../src/config/load.ts';
import { validate } from '../../src/config/validate.ts';
import { FILE } from './given.ts';

interface Observed {
  readonly args?: readonly string[];
  readonly file?: string;
  readonly says?: string;
}

const OBSERVED = readFileSync(new URL('kubeProxyRefusals.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Observed);
const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

/** With the reason. What is not here is refused in the same words, or taken, by both. */
const DIFFERENT = new Map([
  ['{"args":["--windows-service=x"]}', 'kube-proxy has the flag in its Windows build only'],
  ['{"args":["--enable-dsr=x"]}', 'kube-proxy has the flag in its Windows build only'],
  ['{"args":["--kube-api-qps=inf"]}', 'kube-proxy fails later, when it writes its configuration'],
  ['{"args":["--kube-api-qps=0x1p4"]}', 'nobody writes requests per second in hexadecimal'],
  ['{"args":["--healthz-bind-address=","--healthz-bind-address=1.2.3.4"]}', 'kube-proxy panics'],
  [
    '{"args":["--feature-gates=Foo=true"]}',
    'unknown gates are a warning: their list changes with each version',
  ],
  ['{"file":"featureGates:\\n  Foo: true\\n"}', 'unknown gates are a warning'],
]);

/** kube-proxy shows the problems of the first stage that has some, several of them in brackets. */
function asKubeProxySays(problems: readonly string[]): string | undefined {
  const [, stage = ''] =
    /^(failed complete|initialize logging|failed validate): /.exec(problems[0] ?? '') ?? [];
  const ofStage = problems.filter((problem) => problem.startsWith(`${stage}: `));
  const texts = ofStage.map((problem) => problem.slice(stage.length + 2));
  return texts.length > 1 ? `${stage}: [${texts.join(', ')}]` : problems[0];
}

function problemsOf({ args = [], file }: Observed): readonly string[] {
  const extra = ['--write-config-to=/x', ...(file === undefined ? [] : [`--config=${FILE}`])];
  const parsed = parseCommandLine([...extra, ...args]);
  if (!parsed.ok) return parsed.problems;
  const loaded = loadConfig(parsed.value, () => HEAD + (file ?? ''));
  return loaded.ok ? validate(loaded.value.config) : loaded.problems;
}

const EXACT =
  /^(failed complete: (?!failed to decode)|initialize logging: |failed validate: |flag needs an argument)/;
/** Then follow Go's words for what is wrong with a number or a duration, and in Junction plainer ones. */
const SAME_BEGINNING =
  /^(invalid argument ".*" for ".*" flag: |unknown (shorthand )?flag: |bad flag syntax: )/;

test.each(OBSERVED.filter((each) => !DIFFERENT.has(JSON.stringify({ ...each, says: undefined }))))(
  '$args $file',
  (observed) => {
    const { says } = observed;
    const problems = problemsOf(observed);
    if (says === undefined) {
      expect(problems).toEqual([]);
      return;
    }
    const [beginning] = SAME_BEGINNING.exec(says) ?? [];
    if (EXACT.test(says)) expect(asKubeProxySays(problems)).toBe(says);
    else if (beginning !== undefined) expect(problems[0]).toMatch(startsWith(beginning));
    else if (says.includes('failed to decode')) expect(problems[0]).toMatch(startsWith('failed to decode: '));
    else expect(problems).not.toEqual([]);
  },
);

test('every difference is one that was seen', () => {
  const seen = new Set(OBSERVED.map((each) => JSON.stringify({ ...each, says: undefined })));
  expect([...DIFFERENT.keys()].filter((key) => !seen.has(key))).toEqual([]);
});

function startsWith(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`);
}
