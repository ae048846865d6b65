import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BundleLine, bundleName, LIMITS } from '../../src/bundle/format.ts';
import { readBundle } from '../../src/bundle/read.ts';
import { isStatus } from '../../src/bundle/status.ts';
import { SecretFilter } from '../../src/bundle/secrets.ts';
import { writeBundle } from '../../src/bundle/write.ts';
import type { ChangeRecord } from '../../src/explain/types.ts';
import {
  endpointSliceToKubernetes,
  nodeToKubernetes,
  serviceToKubernetes,
} from '../../src/model/project/toKubernetes.ts';
import { parseManifests } from '../../src/sources/manifests/source.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'junction-bundle-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const SHOP = await readFile(new URL('../../examples/shopfront.yaml', import.meta.url), 'utf8');
const INPUT = parseManifests(SHOP);
const HEADER: BundleLine = {
  kind: 'header',
  format: 1,
  version: '1.0.0',
  node: 'node1',
  mode: 'nftables',
  takenAt: 1_790_000_000_000,
  config: {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
  },
  families: [
    { family: 'IPv4', addresses: [], refused: [{ servicePort: 'shop/web:http/TCP', error: 'no room' }] },
  ],
};
const CHANGE: ChangeRecord = {
  id: 7,
  family: 'IPv4',
  service: 'shop/web',
  causes: ['EndpointSlice shop/web-1: endpoint 10.1.0.7 not ready'],
  effects: ['shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster'],
  seenAt: 1_789_999_999_000.5,
  plannedAt: 1_789_999_999_001,
  committedAt: 1_789_999_999_003.25,
};

function lines(): readonly BundleLine[] {
  return [
    HEADER,
    ...INPUT.services.map((each) => ({ kind: 'object' as const, object: serviceToKubernetes(each) })),
    ...INPUT.slices.map((each) => ({ kind: 'object' as const, object: endpointSliceToKubernetes(each) })),
    ...INPUT.nodes.map((each) => ({ kind: 'object' as const, object: nodeToKubernetes(each) })),
    { kind: 'kernel', family: 'IPv4', readAt: 5, dump: { sets: [] } },
    { kind: 'event', event: { kind: 'change', ...CHANGE } },
    { kind: 'status', status: FULL_STATUS },
    { kind: 'versions', versions: { kernel: '6.1.0' } },
    { kind: 'sysctls', sysctls: { 'net.ipv4.ip_forward': '1' } },
    { kind: 'missing', what: 'doctor', reason: 'it was not asked' },
  ];
}

async function* each<T>(items: Iterable<T>): AsyncGenerator<T> {
  for (const item of items) yield await Promise.resolve(item);
}

const NO_SECRETS = new SecretFilter([]);

async function write(content: readonly BundleLine[] = lines(), name = 'b.json.gz'): Promise<string> {
  const path = join(directory, name);
  await writeBundle(each(content), { path, secrets: NO_SECRETS, force: false });
  return path;
}

/** A file that a stranger made. */
async function forged(content: readonly unknown[] | Buffer): Promise<string> {
  const path = join(directory, 'forged.json.gz');
  const text = Buffer.isBuffer(content)
    ? content
    : content.map((item) => `${JSON.stringify(item)}\n`).join('');
  await writeFile(path, gzipSync(text));
  return path;
}

describe('a bundle', () => {
  test('is read as it was written', async () => {
    const bundle = await readBundle(await write());
    expect(bundle.header).toMatchObject({ node: 'node1', mode: 'nftables', families: [{ family: 'IPv4' }] });
    expect(bundle.header.families[0]?.refused).toEqual([
      { servicePort: 'shop/web:http/TCP', error: 'no room' },
    ]);
    expect(bundle.services).toEqual(INPUT.services);
    expect(bundle.slices).toEqual(INPUT.slices);
    expect(bundle.nodes).toEqual(INPUT.nodes);
    expect(bundle.problems).toEqual([]);
    expect(bundle.kernel.get('IPv4')).toEqual({ readAt: 5, dump: { sets: [] } });
    expect(bundle.events).toEqual([{ kind: 'change', ...CHANGE }]);
    expect(bundle.status).toEqual(FULL_STATUS);
    expect(bundle.versions).toEqual({ kernel: '6.1.0' });
    expect(bundle.sysctls).toEqual({ 'net.ipv4.ip_forward': '1' });
    expect(bundle.missing).toEqual(['doctor: it was not asked']);
  });

  test('is for its owner alone, and leaves nothing else behind', async () => {
    const path = await write();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await expect(stat(`${path}.partial`)).rejects.toThrow('ENOENT');
  });

  test('overwrites no file unless it is told to', async () => {
    const path = await write();
    const before = await readFile(path);
    await expect(write([HEADER])).rejects.toThrow(`${path} exists`);
    expect(await readFile(path)).toEqual(before);
    await writeBundle(each([HEADER]), { path, secrets: NO_SECRETS, force: true });
    expect((await readBundle(path)).services).toEqual([]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('that could not be written whole is not there', async () => {
    const path = join(directory, 'b.json.gz');
    async function* broken(): AsyncGenerator<BundleLine> {
      yield await Promise.resolve(HEADER);
      throw new Error('the proxy ended');
    }
    const options = { path, secrets: NO_SECRETS, force: false };
    await expect(writeBundle(broken(), options)).rejects.toThrow('the proxy ended');
    await expect(stat(path)).rejects.toThrow('ENOENT');
    await expect(stat(`${path}.partial`)).rejects.toThrow('ENOENT');
  });

  test('has a name that says of which node and when', () => {
    expect(bundleName('node1', Date.parse('2026-11-16T14:03:12.345Z'))).toBe(
      'junction-bundle-node1-20261116T140312Z.json.gz',
    );
  });

  test('keeps of an object what a plan is made from', async () => {
    const [service] = INPUT.services;
    if (service === undefined) throw new Error('no service in the example');
    const object = serviceToKubernetes(service);
    const annotations = {
      'kubectl.kubernetes.io/last-applied-configuration': '{"password":"hunter2hunter2"}',
    };
    const metadata = { ...object.metadata, annotations, labels: { owner: 'somebody@example.com' } };
    const path = await write([HEADER, { kind: 'object', object: { ...object, metadata } }]);
    const text = gunzipSync(await readFile(path)).toString('utf8');
    expect(text).not.toContain('hunter2');
    expect(text).not.toContain('somebody');
    expect((await readBundle(path)).services).toEqual([service]);
  });
});

describe('a file that is no bundle', () => {
  const end = (count: number): object => ({ kind: 'end', lines: count });

  test.each([
    ['of other text', Buffer.from('hello\nworld\n'), 'line 1 is not JSON'],
    ['that is empty', [], 'is empty'],
    ['without a header', [{ kind: 'object' }, end(2)], 'begins with no header'],
    ['of a list', [[1, 2]], 'line 1 has no kind'],
    ['of a later format', [{ ...HEADER, format: 2 }, end(2)], 'format is not known'],
    ['with a node that cannot be', [{ ...HEADER, node: '\u001b[2J' }, end(2)], 'is not a valid name'],
    ['with a mode that cannot be', [{ ...HEADER, mode: 'ebpf' }, end(2)], '"ebpf" is not known'],
    ['that lacks its end', [HEADER], 'is cut short'],
    ['that lacks lines', [HEADER, end(9)], 'is cut short'],
    ['whose last line is cut', Buffer.from(`${JSON.stringify(HEADER)}\n{"kind":"e`), 'is cut short'],
  ])('%s is refused', async (_, content, message) => {
    const error: unknown = await readBundle(await forged(content)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'BUNDLE_UNREADABLE' });
    expect(String(error)).toContain(message);
  });

  test('that is not compressed, not there, or no file is refused', async () => {
    const path = join(directory, 'plain');
    await writeFile(path, '{"kind":"header"}\n');
    await expect(readBundle(path)).rejects.toThrow('is no bundle, or damaged');
    await expect(readBundle(join(directory, 'nothing'))).rejects.toThrow('does not exist');
    await expect(readBundle(directory)).rejects.toThrow('is not a file');
  });

  test('cut in the middle of the compressed data is refused', async () => {
    const path = await write();
    const whole = await readFile(path);
    for (const part of [0.1, 0.5, 0.9, 0.99]) {
      await writeFile(path, whole.subarray(0, Math.floor(whole.length * part)));
      await expect(readBundle(path)).rejects.toMatchObject({ code: 'BUNDLE_UNREADABLE' });
    }
  });

  test('that unpacks to too much is refused, whatever its own size', async () => {
    const limits = { ...LIMITS, bytes: 1024 * 1024, lineBytes: 64 * 1024, lines: 100 };
    const bomb = await forged(Buffer.alloc(64 * 1024 * 1024, 0x20));
    expect((await stat(bomb)).size).toBeLessThan(100_000);
    await expect(readBundle(bomb, limits)).rejects.toThrow('a line of more than');
    const manyLines = await forged(Buffer.from('{"kind":"header"}\n'.repeat(200)));
    await expect(readBundle(manyLines, limits)).rejects.toThrow('has more than 100 lines');
    const long = `{"kind":"header","a":"${'x'.repeat(50_000)}"}\n`;
    const large = await forged(Buffer.from(long.repeat(60)));
    await expect(readBundle(large, limits)).rejects.toThrow('unpacks to more than 1 MiB');
    await expect(readBundle(large, { ...limits, fileBytes: 10 })).rejects.toThrow('has more than');
  });

  test('objects that cannot be used are left out, and named', async () => {
    const spec = { clusterIP: '10.0.0.1', ports: 'x' };
    const path = await forged([
      HEADER,
      { kind: 'object', object: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec } },
      { kind: 'object', object: { apiVersion: 'v1', kind: 'Secret', data: {} } },
      { kind: 'object', object: 7 },
      { kind: 'change', change: { id: 'x' } },
      { kind: 'change', change: CHANGE },
      { kind: 'kernel', family: 'IPX', dump: {} },
      { kind: 'versions', versions: ['6.1'] },
      { kind: 'something-new', value: 1 },
      end(10),
    ]);
    const bundle = await readBundle(path);
    expect(bundle.services).toEqual([]);
    expect(bundle.problems.map(({ severity, object, message }) => [severity, object, message])).toEqual([
      ['error', 'Service default/web', 'spec.ports is "x"'],
      ['warning', undefined, 'an object of a kind that is not known is left out'],
      ['warning', undefined, 'an object of a kind that is not known is left out'],
    ]);
    // A line of version 0.2.
    expect(bundle.events).toEqual([{ kind: 'change', ...CHANGE }]);
    expect(bundle.kernel.size).toBe(0);
    expect(bundle.versions).toEqual({});
  });
});

describe('a status', () => {
  test('with every field is one', () => {
    expect(isStatus(FULL_STATUS)).toBe(true);
    const source = { kind: 'manifests', paths: ['examples'], problems: [] };
    expect(isStatus({ ...FULL_STATUS, source })).toBe(true);
  });

  test('of which anything is missing, or of another kind, is none', () => {
    const [family] = FULL_STATUS.families;
    for (const key of Object.keys(FULL_STATUS)) {
      expect(isStatus({ ...FULL_STATUS, [key]: Symbol('x') })).toBe(false);
      const isOptional = ['networkNamespace', 'conntrack'].includes(key);
      expect(isStatus({ ...FULL_STATUS, [key]: undefined })).toBe(isOptional);
    }
    for (const key of Object.keys(family ?? {})) {
      expect(isStatus({ ...FULL_STATUS, families: [{ ...family, [key]: [{}, null] }] })).toBe(false);
    }
    for (const raw of [null, 7, [], {}, { ...FULL_STATUS, source: { kind: 'api' } }])
      expect(isStatus(raw)).toBe(false);
  });

  test('that is none is left out of a bundle', async () => {
    const bundle = await readBundle(await write([HEADER, { kind: 'status', status: { mode: 'nftables' } }]));
    expect(bundle.status).toBeUndefined();
    expect(bundle.missing).toEqual(['status: it cannot be read']);
  });
});
