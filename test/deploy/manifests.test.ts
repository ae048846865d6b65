import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, readObjects, readText } from './chart.ts';
import { complaints } from './kubernetes.ts';
import { plainManifest } from './plainManifest.ts';

const PATH = 'deploy/manifests/junction.yaml';

if (process.env['JUNCTION_WRITE_MANIFESTS'] === '1') writeFileSync(join(ROOT, PATH), plainManifest());

test('the plain manifests are what the chart makes of its defaults', () => {
  expect(readText(PATH)).toBe(plainManifest());
});

test('they are objects that the API server knows, without a trace of Helm', () => {
  const objects = readObjects(readText(PATH));
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
