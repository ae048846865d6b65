/** kube-proxy's flags, fields and gates, one by one: each is here, with the same default, and on the page that says how. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../../scripts/samples/compatibility.ts';
import { GATES } from '../../src/config/featureGates.ts';
import { CONFIG_FIELDS, FLAGS } from '../../src/config/table.ts';
import { ROOT } from '../support/checkout.ts';

const KUBE_PROXY = readSettings(ROOT);
const PAGE = readFileSync(join(ROOT, 'docs/compatibility.md'), 'utf8');
const ALL_FLAGS = { ...KUBE_PROXY.flags, ...KUBE_PROXY.deprecatedFlags, ...KUBE_PROXY.windowsFlags };

/** What the page says of it; undefined: nothing. */
function onPage(name: string): string | undefined {
  const row = PAGE.split('\n').find((line) => line.startsWith('| ') && line.includes(`\`${name}\``));
  return row?.split(' | ')[1];
}

describe("kube-proxy's settings", () => {
  test.each(Object.entries(ALL_FLAGS))('--%s is here, with the same default', (name, expected) => {
    expect(onPage(`--${name}`)).toMatch(/^(as kube-proxy|different: .+|without effect: .+) \|$/);
    if (name === 'help') return;
    const flag = FLAGS.find((each) => each.name === name);
    const normal = flag?.kind.print(flag.default);
    // kube-proxy's help leaves out what is empty, false, 0 or 0s.
    if (expected === '') expect(normal).toBe(flag?.kind.print(flag.kind.zero));
    else expect(normal).toBe(expected);
  });

  test.each(KUBE_PROXY.fields.map((field) => [field]))('%s is here', (path) => {
    expect(CONFIG_FIELDS.map((field) => field.path)).toContain(path);
    expect(onPage(path)).toMatch(/^(as kube-proxy|different: .+|without effect: .+) \|$/);
  });

  test('every field and flag that is not kube-proxy’s is under junction', () => {
    const own = CONFIG_FIELDS.filter(({ path }) => !KUBE_PROXY.fields.includes(path));
    expect(own.filter(({ path }) => !path.startsWith('junction.')).map(({ path }) => path)).toEqual([]);
  });

  test.each(Object.entries(KUBE_PROXY.gates))('the gate %s is on the page', (name, state) => {
    expect(onPage(name)).toBeDefined();
    const own: (typeof GATES)[keyof typeof GATES] | undefined = GATES[name as keyof typeof GATES];
    if (own !== undefined) expect(`${own.stage.toUpperCase()} ${own.default}`).toBe(state);
  });

  test('every metric of kube-proxy is on the page', () => {
    const golden = readFileSync(join(ROOT, 'test/telemetry/metrics/golden/kube-proxy-1.36.txt'), 'utf8');
    const names = golden
      .split('\n')
      .filter((line) => /^\w/.test(line))
      .map((line) => line.split(' ')[0] ?? '');
    const patterns = [...PAGE.matchAll(/`(\w+)\*`/g)].map(([, prefix = '']) => prefix);
    const missing = names.filter(
      (name) => onPage(name) === undefined && !patterns.some((prefix) => name.startsWith(prefix)),
    );
    expect(names.length).toBeGreaterThan(100);
    expect(missing).toEqual([]);
  });
});
