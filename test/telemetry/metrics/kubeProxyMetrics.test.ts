/** kube-proxy's metrics, one by one: each is here in the same shape, or the documentation says why it is not. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { gateStates } from '../../../src/config/featureGates.ts';
import { KUBERNETES_VERSION, VERSION } from '../../../src/version.ts';
import { everythingOf, MODES } from './everything.ts';
import type { ParsedFamily } from './parse.ts';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const DOCUMENTATION = read('../../../docs/metrics.md');
const OURS = ['junction_', 'nodejs_'];
/** Histograms of Go's runtime are not listed with their buckets. */
const SHAPES = new Map(
  read('golden/kube-proxy-1.36.txt')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.indexOf(' ')), line]),
);

/** As the list has it: name, type, labels, and the buckets of a histogram. */
function shapeOf({ name, type, samples }: ParsedFamily): string {
  const labels = new Set(samples.flatMap((sample) => sample.labels.map(([label]) => label)));
  const bounds = samples.flatMap((sample) =>
    sample.labels.filter(([label]) => label === 'le').map(([, bound]) => bound),
  );
  labels.delete('le');
  return [name, type, `{${[...labels].sort().join()}}`, ...new Set(bounds)].join(' ');
}

/** `name` or `prefix_*`, from the first column of the table under this heading. */
function absent(): readonly string[] {
  const [, section = ''] = DOCUMENTATION.split('\n## Metrics of kube-proxy that are not here\n');
  const rows = (section.split('\n## ')[0] ?? '').matchAll(/^\| (`[^|]+`) \| \S/gm);
  return [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

const isNamed = (name: string, pattern: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;

describe("kube-proxy's metrics", async () => {
  const families = (await Promise.all(MODES.map(everythingOf))).flat();
  const ours = new Map(families.map((family) => [family.name, family]));

  test('are here with the same type, labels and buckets, or are said to be absent', () => {
    const patterns = absent();
    expect(patterns).not.toEqual([]);
    for (const [name, shape] of SHAPES) {
      const family = ours.get(name);
      if (family) expect(shapeOf(family)).toBe(shape);
      else expect(patterns.some((pattern) => isNamed(name, pattern)) ? '' : name).toBe('');
    }
  });

  test('what is said to be absent is a metric of kube-proxy, and absent', () => {
    for (const pattern of absent()) {
      expect([...SHAPES.keys()].some((name) => isNamed(name, pattern)) ? '' : pattern).toBe('');
      if (!pattern.endsWith('*')) expect([...ours.keys()]).not.toContain(pattern);
    }
  });

  test('all others have a prefix of their own', () => {
    const others = [...ours.keys()].filter((name) => !SHAPES.has(name));
    expect(others.filter((name) => !OURS.some((prefix) => name.startsWith(prefix)))).toEqual([]);
  });

  test('every metric is in the documentation', () => {
    expect([...ours.keys()].filter((name) => !DOCUMENTATION.includes(`\`${name}\``))).toEqual([]);
  });

  test('the documentation has the version that is shown', () => {
    expect(DOCUMENTATION).toContain(`\`v${KUBERNETES_VERSION}+junction-${VERSION}\``);
  });

  test('the feature gates that concern a service proxy have its names, stages and defaults', () => {
    // From kubernetes_feature_enabled of kube-proxy 1.36.4, which has 242 of them, most of them of other components.
    expect(gateStates({}).map(({ name, stage, enabled }) => `${name} ${stage} ${enabled}`)).toEqual([
      'AllowServiceExternalIPs  true',
      'PreferSameTrafficDistribution  true',
      'MultiCIDRServiceAllocator  true',
      'ComponentFlagz BETA true',
      'ComponentStatusz BETA true',
      'NativeHistograms ALPHA false',
      'ContextualLogging BETA true',
      'LoggingAlphaOptions ALPHA false',
      'LoggingBetaOptions BETA true',
      'AllAlpha ALPHA false',
      'AllBeta BETA false',
    ]);
  });
});
