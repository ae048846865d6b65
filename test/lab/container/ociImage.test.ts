import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unpackImage } from '../../../lab/container/ociImage.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-oci-'));
  mkdirSync(join(folder, 'layout/blobs/sha256'), { recursive: true });
  mkdirSync(join(folder, 'out'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const OWN = process.arch === 'x64' ? 'amd64' : process.arch;
const CONFIG = { Entrypoint: ['/hello'], Cmd: [], Env: [], WorkingDir: '/' };
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';

function blob(content: Buffer | object): { readonly digest: string; readonly path: string } {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  const hash = createHash('sha256').update(bytes).digest('hex');
  const path = join(folder, 'layout/blobs/sha256', hash);
  writeFileSync(path, bytes);
  return { digest: `sha256:${hash}`, path };
}

/** One layer with the file `hello`. Returns where the layer is. */
function layout(architecture: string): string {
  writeFileSync(join(folder, 'hello'), 'hello');
  execFileSync('tar', ['-czf', join(folder, 'layer'), '-C', folder, 'hello']);
  const layer = blob(readFileSync(join(folder, 'layer')));
  const { digest: config } = blob({ config: CONFIG });
  const { digest } = blob({ config: { digest: config }, layers: [{ digest: layer.digest }] });
  const index = blob({ manifests: [{ mediaType: MANIFEST, digest, platform: { architecture } }] });
  const top = { manifests: [{ mediaType: INDEX, digest: index.digest }] };
  writeFileSync(join(folder, 'layout/index.json'), JSON.stringify(top));
  return layer.path;
}

const unpack = (path: string): ReturnType<typeof unpackImage> => unpackImage(path, join(folder, 'out'));

test('a folder and an archive, with the architecture of this machine in an index of several', () => {
  layout(OWN);
  execFileSync('tar', ['-cf', join(folder, 'x.tar'), '-C', join(folder, 'layout'), '.']);
  const { rootfs, config, digest } = unpack(join(folder, 'x.tar'));
  expect(readFileSync(join(rootfs, 'hello'), 'utf8')).toBe('hello');
  expect(config).toEqual(CONFIG);
  rmSync(join(folder, 'out'), { recursive: true });
  mkdirSync(join(folder, 'out'));
  expect(unpack(join(folder, 'layout')).digest).toBe(digest);
});

test('for another architecture, a layer that was changed, and what is no image: refused', () => {
  layout('s390x');
  expect(() => unpack(join(folder, 'layout'))).toThrow(`has no image for ${OWN}, only for s390x`);
  writeFileSync(layout(OWN), 'x');
  expect(() => unpack(join(folder, 'layout'))).toThrow(
    /^a blob is sha256:\w{64} and should be sha256:\w{64}$/,
  );
  expect(() => unpack(join(folder, 'layer'))).toThrow('is no OCI image');
});
