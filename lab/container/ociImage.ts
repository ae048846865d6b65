/** Unpacks an image that `npm run image` has written: the archive, or the folder of the same layout. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** How the program in it is started. https://github.com/opencontainers/image-spec/blob/main/config.md */
export interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Env: readonly string[];
  readonly WorkingDir: string;
}

export interface UnpackedImage {
  readonly rootfs: string;
  readonly config: ImageConfig;
  readonly digest: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

/** `folder` is empty, and belongs to the caller. Root alone can give files to root. */
export function unpackImage(path: string, folder: string): UnpackedImage {
  const layout = statSync(path).isDirectory() ? path : unpackArchive(path, join(folder, 'layout'));
  if (!existsSync(join(layout, 'index.json')))
    throw new Error(`${path} is no OCI image: it has no index.json`);
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as Index;
  const { descriptor, manifest } = findManifest(layout, manifests, path);
  const rootfs = join(folder, 'rootfs');
  mkdirSync(rootfs);
  for (const layer of manifest.layers) {
    readBlob(layout, layer);
    execFileSync('tar', ['-xzpf', blobPath(layout, layer), '-C', rootfs, '--numeric-owner']);
  }
  const { config } = readJson(layout, manifest.config) as { readonly config: ImageConfig };
  return { rootfs, config, digest: descriptor.digest };
}

function unpackArchive(path: string, folder: string): string {
  mkdirSync(folder);
  try {
    execFileSync('tar', ['-xf', path, '-C', folder], { stdio: 'pipe' });
  } catch {
    throw new Error(`${path} is no OCI image: it is no tar archive`);
  }
  return folder;
}

interface Index {
  readonly manifests: readonly Descriptor[];
}

function findManifest(
  layout: string,
  descriptors: readonly Descriptor[],
  path: string,
): { readonly descriptor: Descriptor; readonly manifest: Manifest } {
  const all = descriptors.flatMap((each) =>
    each.mediaType.includes('.index.') ? (readJson(layout, each) as Index).manifests : [each],
  );
  const descriptor = all.find(({ platform }) => platform?.architecture === ARCHITECTURE);
  if (descriptor) return { descriptor, manifest: readJson(layout, descriptor) as Manifest };
  const others = all.map(({ platform }) => platform?.architecture ?? 'unknown');
  throw new Error(`${path} has no image for ${ARCHITECTURE}, only for ${others.join(', ')}`);
}

function readJson(layout: string, descriptor: Descriptor): unknown {
  return JSON.parse(readBlob(layout, descriptor).toString()) as unknown;
}

function readBlob(layout: string, descriptor: Descriptor): Buffer {
  const bytes = readFileSync(blobPath(layout, descriptor));
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  if (digest !== descriptor.digest) throw new Error(`a blob is ${digest} and should be ${descriptor.digest}`);
  return bytes;
}

function blobPath(layout: string, { digest }: Descriptor): string {
  return join(layout, 'blobs', digest.replace(':', '/'));
}
