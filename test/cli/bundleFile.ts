/** A bundle of the examples, as `junction bundle` writes one, without a node to take it from. */
import { gzipSync } from 'node:zlib';
import { writeFileSync } from 'node:fs';
import type { BundleLine } from '../../src/bundle/format.ts';
import {
  endpointSliceToKubernetes,
  type KubernetesObject,
  nodeToKubernetes,
  serviceToKubernetes,
} from '../../src/model/project/toKubernetes.ts';
import { loadManifests } from '../../src/sources/manifests/source.ts';

export const TAKEN_AT = Date.parse('2026-11-16T14:03:12Z');

export const HEADER = {
  kind: 'header',
  format: 1,
  version: '0.1.0',
  node: 'node1',
  mode: 'iptables',
  takenAt: TAKEN_AT,
  config: {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clusterCIDR: '10.244.0.0/16',
  },
  families: [{ family: 'IPv4', addresses: [], refused: [] }],
} as const satisfies BundleLine;

export async function exampleObjects(): Promise<readonly KubernetesObject[]> {
  const { services, slices, nodes } = await loadManifests(['examples']);
  return [
    ...nodes.map(nodeToKubernetes),
    ...services.map(serviceToKubernetes),
    ...slices.map((slice) => endpointSliceToKubernetes(slice)),
  ];
}

/** `more`: lines beside those of the snapshot. */
export async function writeExampleBundle(path: string, more: readonly BundleLine[]): Promise<string> {
  const objects = (await exampleObjects()).map((object) => ({ kind: 'object', object }) as const);
  return writeLines(path, [HEADER, ...objects, ...more]);
}

/** Whole: with its last line. */
export function writeLines(path: string, lines: readonly unknown[]): string {
  const all = [...lines, { kind: 'end', lines: lines.length + 1 }];
  writeFileSync(path, gzipSync(all.map((line) => `${JSON.stringify(line)}\n`).join('')));
  return path;
}
