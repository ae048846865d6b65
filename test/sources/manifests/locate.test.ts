/** Where a field is written: in documents, in lists, in JSON, and where it is not written at all. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { locateField } from '../../../src/sources/manifests/locate.ts';
import { loadManifests } from '../../../src/sources/manifests/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'junction-locate-'));
afterAll(() => rmSync(folder, { recursive: true }));

const SERVICE = `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  clusterIP: 10.96.0.1
  ports:
    - port: 80
    - port: 443
  loadBalancerSourceRanges:
    - 192.0.2.0/24
`;
const LIST = `apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Service
    metadata: { name: api, namespace: shop }
    spec: { clusterIP: 10.96.0.2, ports: [{ port: 80 }] }
  - apiVersion: v1
    kind: Service
    metadata: { name: cart, namespace: shop }
    spec:
      clusterIP: 10.96.0.3
      ports:
        - port: 80
`;
const JSON_LIST = JSON.stringify(
  {
    kind: 'ServiceList',
    apiVersion: 'v1',
    items: [
      {
        metadata: { name: 'dns', namespace: 'shop' },
        spec: { clusterIP: '10.96.0.4', ports: [{ port: 53 }] },
      },
    ],
  },
  null,
  2,
);

async function located(name: string, text: string, id: string, field: string): Promise<string | undefined> {
  const file = join(folder, name);
  writeFileSync(file, text);
  const { places } = await loadManifests([file]);
  const place = places.get(id);
  return place === undefined ? undefined : locateField(place, id, field)?.replace(`${folder}/`, '');
}

test.each([
  ['one.yaml:9', 'one.yaml', SERVICE, 'Service shop/web', 'spec.loadBalancerSourceRanges'],
  ['one.yaml:8', 'one.yaml', SERVICE, 'Service shop/web', 'spec.ports[1].port'],
  ['one.yaml:4', 'one.yaml', SERVICE, 'Service shop/web', 'spec.externalTrafficPolicy'],
  ['two.yaml:20', 'two.yaml', `${LIST}---\n${SERVICE}`, 'Service shop/web', 'spec.clusterIP'],
  ['two.yaml:12', 'two.yaml', `${LIST}---\n${SERVICE}`, 'Service shop/cart', 'spec.clusterIP'],
  ['two.yaml:7', 'two.yaml', `# a comment\n---\n${SERVICE}`, 'Service shop/web', 'spec.clusterIP'],
  ['list.json:11', 'list.json', JSON_LIST, 'Service shop/dns', 'spec.clusterIP'],
])('%s', async (place, name, text, id, field) => {
  expect(await located(name, text, id, field)).toBe(place);
});

test('a file that has gone, or no longer has the object, has no line', async () => {
  expect(locateField(join(folder, 'gone.yaml:1:1'), 'Service shop/web', 'spec')).toBeUndefined();
  const file = join(folder, 'changed.yaml');
  writeFileSync(file, SERVICE);
  const { places } = await loadManifests([file]);
  writeFileSync(file, LIST);
  expect(
    locateField(places.get('Service shop/web') ?? '', 'Service shop/web', 'spec.clusterIP'),
  ).toBeUndefined();
});

test('a line of a file that was edited is the one that it has now', async () => {
  const file = join(folder, 'edited.yaml');
  const place = `${file}:1:1`;
  const line = (): string | undefined =>
    locateField(place, 'Service shop/web', 'spec.clusterIP')?.replace(`${folder}/`, '');
  writeFileSync(file, SERVICE);
  const before = line();
  expect([before, line()]).toEqual(['edited.yaml:5', 'edited.yaml:5']);
  writeFileSync(file, SERVICE.replace('spec:', '# a comment\nspec:'));
  expect(line()).toBe('edited.yaml:6');
});
