import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { at, type Data, isData, listAt, podOf, ROOT, readObjects, readText, renderObjects } from './chart.ts';
import { complaints } from './kubernetes.ts';
import { STATIC_POD, STATIC_POD_FOLDER, staticPod } from './staticPod.ts';

if (process.env['JUNCTION_WRITE_MANIFESTS'] === '1') writeFileSync(join(ROOT, STATIC_POD), staticPod());

describe('the static pod', () => {
  const [pod, ...others] = readObjects(readText(STATIC_POD));
  const spec = at(pod, 'spec');

  test('is what the chart makes', () => {
    expect(readText(STATIC_POD)).toBe(staticPod());
    expect(others).toEqual([]);
  });

  test('is a pod that the API server knows, without a trace of Helm', () => {
    expect(complaints(pod ?? {})).toEqual([]);
    expect(JSON.stringify(pod)).not.toMatch(/helm|managed-by|checksum/i);
  });

  test('names no object of the API: kubelet refuses such static pods', () => {
    expect(JSON.stringify(pod)).not.toMatch(
      /serviceAccount|configMap|secret|persistentVolumeClaim|envFrom|valueFrom":\{"(?!fieldRef)/i,
    );
    const volumes = listAt(spec, 'volumes').filter(isData);
    const kinds = new Set(
      volumes.flatMap((volume: Data) => Object.keys(volume).filter((key) => key !== 'name')),
    );
    expect([...kinds].sort()).toEqual(['emptyDir', 'hostPath']);
    expect(volumes.find(({ name }) => name === 'config')).toEqual({
      name: 'config',
      hostPath: { path: STATIC_POD_FOLDER, type: 'Directory' },
    });
  });

  test('runs the containers of the DaemonSet, unchanged', () => {
    const daemonSet = podOf(renderObjects({ existingConfigMap: 'kube-proxy' }));
    expect(at(spec, 'containers')).toEqual(at(daemonSet, 'containers'));
    expect(at(spec, 'initContainers')).toEqual(at(daemonSet, 'initContainers'));
    expect(at(spec, 'hostNetwork')).toBe(true);
  });
});
