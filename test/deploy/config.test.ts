import { describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { loadConfig } from '../../src/config/load.ts';
import { validate } from '../../src/config/validate.ts';
import { configText, listAt, podOf, readObjects, readText, renderObjects } from './chart.ts';
import { PLAIN_MANIFESTS } from './plainManifest.ts';
import { VALUE_SETS } from './valueSets.ts';

const RENDERED = Object.entries(VALUE_SETS)
  .filter(([, values]) => values['existingConfigMap'] === undefined)
  .map(([name, values]) => [name, renderObjects(values)] as const);

describe.each([
  ...RENDERED,
  ...PLAIN_MANIFESTS.map(({ path }) => [path, readObjects(readText(path))] as const),
])('the program started as the pod starts it, with %s', (_, objects) => {
  const file = configText(objects);
  const args = listAt(podOf(objects), 'containers', 0, 'args').map((arg) =>
    String(arg).replace('$(NODE_NAME)', 'node1'),
  );

  test('understands every flag and every field', () => {
    const parsed = parseCommandLine(args.slice(1));
    if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
    const loaded = loadConfig(parsed.value, (path) => {
      expect(path).toBe('/var/lib/kube-proxy/config.conf');
      return file;
    });
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'));
    expect(validate(loaded.value.config)).toEqual([]);
    expect(loaded.value.notes.filter(({ severity }) => severity === 'warning')).toEqual([]);
    expect(JSON.stringify(loaded.value.notes)).not.toMatch(/lenient/);
    expect(loaded.value.config.hostnameOverride).toBe('node1');
  });
});
