import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { ADDRESSES, PODS_OF } from '../../../lab/topology.ts';
import { loadManifests } from '../../../src/sources/manifests/source.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');
const FILES = readdirSync(EXAMPLES);

test('every example loads without a word', async () => {
  const { problems, services, slices, nodes } = await loadManifests([EXAMPLES]);
  expect(problems).toEqual([]);
  expect(services.map(({ name }) => name).sort()).toEqual([
    'api',
    'cart',
    'catalog',
    'dns',
    'idle',
    'shopfront',
    'web',
  ]);
  expect(slices).toHaveLength(services.length + 1); // one more for the second family
  expect(nodes.map(({ name }) => name)).toEqual(['node1', 'node2']);
});

test('every endpoint is a pod of the lab, on the node that it says', async () => {
  const { slices } = await loadManifests([EXAMPLES]);
  const nodeOf = new Map(
    (['node1', 'node2'] as const).flatMap((node) =>
      PODS_OF[node].flatMap((pod) =>
        Object.values(ADDRESSES[pod]).flatMap((ips) => ips.map((ip) => [ip, node])),
      ),
    ) as [string, string][],
  );
  const endpoints = slices.flatMap((slice) => slice.endpoints);
  for (const { ip, nodeName } of endpoints) expect([ip, nodeName]).toEqual([ip, nodeOf.get(ip)]);
});

test('every port of a service has endpoints of the same name', async () => {
  const { services, slices } = await loadManifests([EXAMPLES]);
  const served = new Set(
    slices.flatMap(({ service, ports }) =>
      ports.map(({ name, protocol }) => `${service} ${name} ${protocol}`),
    ),
  );
  for (const { name, ports } of services) {
    for (const port of ports) expect(served).toContain(`${name} ${port.name} ${port.protocol}`);
  }
});

test.each(FILES)('%s begins by saying what it shows', (file) => {
  const text = readFileSync(join(EXAMPLES, file), 'utf8');
  expect(text).toMatch(/^# /);
  for (const document of parseAllDocuments(text)) {
    expect(document.errors).toEqual([]);
    expect(document.toJS()).toMatchObject({ apiVersion: expect.any(String), kind: expect.any(String) });
  }
});
