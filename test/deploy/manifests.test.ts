/** The files for those who do not use Helm. To write them: npx vitest run test/deploy/manifests.test.ts -u */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, readObjects } from './chart.ts';
import { PLAIN_MANIFESTS } from './plainManifests.ts';

test.each(Object.entries(PLAIN_MANIFESTS))('%s is what the chart makes', async (path, text) => {
  await expect(text).toMatchFileSnapshot(join(ROOT, path));
  const objects = JSON.stringify(readObjects(text));
  expect(objects).not.toMatch(/helm|managed-by|checksum/i);
  // kubectl apply keeps the object in an annotation, which has this limit.
  expect(Buffer.byteLength(objects)).toBeLessThan(262_144);
});

test('the static pod names no object of the API: kubelet refuses such pods', () => {
  expect(PLAIN_MANIFESTS['deploy/manifests/junction-static-pod.yaml']).not.toMatch(
    /serviceAccount|configMap|secret|persistentVolumeClaim|envFrom|KeyRef/i,
  );
});
