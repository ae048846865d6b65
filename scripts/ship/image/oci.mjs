/**
 * Images in the layout of the Open Container Initiative (https://github.com/opencontainers/image-spec), as a folder and as an
 * archive of it. Archives for one architecture have a manifest.json too, which is what `docker load` reads.
 */
import { copyFileSync, createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeTar } from '../tar.mjs';
import { digestOf } from './blobs.mjs';

const TYPE = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
};

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const ENTRYPOINT = '/usr/local/bin/junction';
/** Node 24's own is 16 MiB and more: a quarter more memory, for no less CPU time (docs/sizing.md). */
const NODE_OPTIONS = '--max-semi-space-size=2';

/** For one architecture: `{ descriptor, blobs, docker }`. A blob is a `Buffer`, or the path of a file. */
export function imageOf({ arch, layers, source }) {
  const labels = labelsOf(source);
  const config = blob(TYPE.config, {
    created: source.created,
    architecture: arch,
    ...(arch === 'arm64' && { variant: 'v8' }),
    os: 'linux',
    config: {
      // Kubernetes gives capabilities to root only; which ones it keeps is the pod's business.
      User: '0:0',
      Env: [`PATH=${PATH}`, 'NODE_ENV=production', `NODE_OPTIONS=${NODE_OPTIONS}`],
      Entrypoint: [ENTRYPOINT],
      Cmd: ['--help'],
      WorkingDir: '/',
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ name }) => ({
      created: source.created,
      created_by: 'npm run image',
      comment: name,
    })),
  });
  const manifest = blob(TYPE.manifest, {
    schemaVersion: 2,
    mediaType: TYPE.manifest,
    config: config.descriptor,
    layers: layers.map(({ digest, size }) => ({ mediaType: TYPE.layer, digest, size })),
    annotations: labels,
  });
  const platform = { architecture: arch, os: 'linux', ...(arch === 'arm64' && { variant: 'v8' }) };
  return {
    descriptor: { ...manifest.descriptor, platform },
    blobs: new Map([
      ...layers.map(({ digest, file }) => [digest, file]),
      [config.descriptor.digest, config.bytes],
      [manifest.descriptor.digest, manifest.bytes],
    ]),
    docker: {
      Config: blobPath(config.descriptor.digest),
      RepoTags: [source.reference],
      Layers: layers.map(({ digest }) => blobPath(digest)),
    },
  };
}

/** One image for several architectures: a registry hands each node its own. */
export function indexOf(images, source) {
  const index = blob(TYPE.index, {
    schemaVersion: 2,
    mediaType: TYPE.index,
    manifests: images.map(({ descriptor }) => descriptor),
    annotations: labelsOf(source),
  });
  const blobs = images.flatMap((image) => [...image.blobs]);
  return {
    descriptor: index.descriptor,
    blobs: new Map([...blobs, [index.descriptor.digest, index.bytes]]),
  };
}

/** Writes `NAME.oci/` and `NAME.oci.tar`. */
export async function writeImage(folder, name, image, source) {
  const layout = join(folder, `${name}.oci`);
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  const files = new Map([
    ['oci-layout', json({ imageLayoutVersion: '1.0.0' })],
    ['index.json', json(topIndex(image.descriptor, source))],
    ...(image.docker ? [['manifest.json', json([image.docker])]] : []),
  ]);
  for (const [path, bytes] of files) writeFileSync(join(layout, path), bytes);
  for (const [digest, content] of image.blobs) {
    const path = join(layout, blobPath(digest));
    if (typeof content === 'string') copyFileSync(content, path);
    else writeFileSync(path, content);
  }
  const entries = [...files.keys(), ...[...image.blobs.keys()].map(blobPath)].map((path) => ({
    path,
    type: 'file',
    data: readFileSync(join(layout, path)),
  }));
  await pipeline(
    Readable.from(writeTar(entries, { mtime: source.epoch })),
    createWriteStream(join(folder, `${name}.oci.tar`)),
  );
}

/** containerd takes the image's name from the one annotation, podman and skopeo from the other. */
function topIndex(descriptor, { reference }) {
  const annotations = {
    'io.containerd.image.name': reference,
    'org.opencontainers.image.ref.name': reference,
  };
  return { schemaVersion: 2, mediaType: TYPE.index, manifests: [{ ...descriptor, annotations }] };
}

function labelsOf({ version, commit, created }) {
  return {
    'org.opencontainers.image.created': created,
    'org.opencontainers.image.description': "A Kubernetes service proxy that takes kube-proxy's place",
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.revision': commit,
    'org.opencontainers.image.title': 'junction',
    'org.opencontainers.image.version': version,
  };
}

function blob(mediaType, value) {
  const bytes = json(value);
  return { bytes, descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length } };
}

function json(value) {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

function blobPath(digest) {
  return `blobs/${digest.replace(':', '/')}`;
}
