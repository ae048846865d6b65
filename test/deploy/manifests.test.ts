import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { at, isData, objectOf, ROOT, readObjects, readText } from './chart.ts';
import { complaints } from './kubernetes.ts';
import {
  PLAIN_CLEANUP,
  PLAIN_MANIFESTS,
  PLAIN_POD_MONITOR,
  plainCleanup,
  plainManifest,
  plainPodMonitor,
} from './plainManifest.ts';

if (process.env['JUNCTION_WRITE_MANIFESTS'] === '1') {
  for (const each of PLAIN_MANIFESTS) writeFileSync(join(ROOT, each.path), plainManifest(each));
  writeFileSync(join(ROOT, PLAIN_POD_MONITOR), plainPodMonitor());
  writeFileSync(join(ROOT, PLAIN_CLEANUP), plainCleanup());
}

describe.each(PLAIN_MANIFESTS)('$path', (manifest) => {
  test(`is what the chart makes ${manifest.title}`, () => {
    expect(readText(manifest.path)).toBe(plainManifest(manifest));
  });

  test('has objects that the API server knows, without a trace of Helm', () => {
    const objects = readObjects(readText(manifest.path));
    expect(objects.map(({ kind }) => kind)).toEqual([
      'ServiceAccount',
      'ClusterRole',
      'ClusterRoleBinding',
      'ConfigMap',
      'DaemonSet',
    ]);
    expect(objects.flatMap(complaints)).toEqual([]);
    expect(JSON.stringify(objects)).not.toMatch(/helm|managed-by|checksum/i);
  });
});

test('the clean-up of nodes is the hook of the chart, without a trace of Helm', () => {
  expect(readText(PLAIN_CLEANUP)).toBe(plainCleanup());
  const objects = readObjects(readText(PLAIN_CLEANUP));
  expect(objects.flatMap(complaints)).toEqual([]);
  expect(JSON.stringify(objects)).not.toMatch(/helm/i);
});

describe('the PodMonitor for those without Helm', () => {
  const [monitor, ...others] = readObjects(readText(PLAIN_POD_MONITOR));

  test('is what the chart makes', () => {
    expect(readText(PLAIN_POD_MONITOR)).toBe(plainPodMonitor());
    expect(others).toEqual([]);
    expect(JSON.stringify(monitor)).not.toMatch(/helm|managed-by/i);
  });

  test.each(PLAIN_MANIFESTS)('selects the pods of $path', ({ path }) => {
    const pod = at(objectOf(readObjects(readText(path)), 'DaemonSet'), 'spec', 'template');
    const wanted = at(monitor, 'spec', 'selector', 'matchLabels');
    expect(at(pod, 'metadata', 'labels')).toMatchObject(isData(wanted) ? wanted : { none: '' });
    expect(JSON.stringify(at(pod, 'spec', 'containers'))).toContain(
      `"name":"${String(at(monitor, 'spec', 'podMetricsEndpoints', 0, 'port'))}"`,
    );
  });
});
