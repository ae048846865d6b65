/** Writes a bundle: for its owner alone, whole or not at all, and over no file that is there. */
import { open, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { errorCode, JunctionError } from '../errors.ts';
import {
  endpointSliceToKubernetes,
  type KubernetesObject,
  nodeToKubernetes,
  serviceToKubernetes,
} from '../model/project/toKubernetes.ts';
import { projectKind, type SnapshotObject } from '../sources/manifests/parse.ts';
import type { BundleLine } from './format.ts';
import type { SecretFilter } from './secrets.ts';

interface WriteOptions {
  readonly path: string;
  readonly secrets: SecretFilter;
  /** Replaces a file that is there. */
  readonly force: boolean;
}

/** Returns its size in bytes. */
export async function writeBundle(
  lines: AsyncIterable<BundleLine>,
  { path, secrets, force }: WriteOptions,
): Promise<number> {
  if (!force) await claim(path);
  const temporary = `${path}.partial`;
  try {
    const file = await create(temporary, 'w');
    const output = file.createWriteStream();
    await streamBundle(lines, secrets, output);
    await rename(temporary, path);
    return output.bytesWritten;
  } catch (error) {
    await rm(temporary, { force: true });
    if (!force) await rm(path, { force: true });
    throw error;
  }
}

/** The same for a pipe. */
export function streamBundle(
  lines: AsyncIterable<BundleLine>,
  secrets: SecretFilter,
  output: NodeJS.WritableStream,
): Promise<void> {
  return pipeline(Readable.from(textOf(lines, secrets)), createGzip(), output);
}

/** The name is taken at once, so that no other file can get it meanwhile. */
async function claim(path: string): Promise<void> {
  const file = await create(path, 'wx');
  await file.close();
}

async function create(path: string, flags: 'w' | 'wx') {
  try {
    return await open(path, flags, 0o600);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new JunctionError('BUNDLE_UNREADABLE', `${path} exists`, {
      hint: 'Name another file with --output, or replace it with --force.',
    });
  }
}

async function* textOf(lines: AsyncIterable<BundleLine>, secrets: SecretFilter): AsyncGenerator<string> {
  let count = 1;
  for await (const line of lines) {
    const parts = linesOf(line, secrets);
    count += parts.length;
    for (const part of parts) yield `${part}\n`;
  }
  yield `${JSON.stringify({ kind: 'end', lines: count } satisfies BundleLine)}\n`;
}

function linesOf(line: BundleLine, secrets: SecretFilter): readonly string[] {
  switch (line.kind) {
    case 'object':
      return slimmed(line.object).map((object) =>
        JSON.stringify({ kind: 'object', object } satisfies BundleLine),
      );
    default:
      return [secrets.clean(JSON.stringify(line))];
  }
}

/** Only what a plan is made from, names, numbers and addresses: no annotations, no labels of others. */
function slimmed(raw: KubernetesObject): readonly KubernetesObject[] {
  const projection = projectKind(raw.kind, raw);
  if (projection.kind !== 'object') return [];
  return projection.value.map(toKubernetes);
}

function toKubernetes({ kind, value }: SnapshotObject): KubernetesObject {
  switch (kind) {
    case 'Service':
      return serviceToKubernetes(value);
    case 'EndpointSlice':
      return endpointSliceToKubernetes(value);
    case 'Node':
      return nodeToKubernetes(value);
  }
}
