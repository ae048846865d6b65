import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT, readObjects, readText } from './chart.ts';
import { complaints } from './kubernetes.ts';
import { PLAIN_MANIFESTS, plainManifest } from './plainManifest.ts';

if (process.env['JUNCTION_WRITE_MANIFESTS'] === '1') {
  for (const each of PLAIN_MANIFESTS) writeFileSync(join(ROOT, each.path), plainManifest(each));
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
