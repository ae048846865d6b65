/** Compressed layers as files, with the digests by which an image names them. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Failure } from '../../support/run.mjs';
import { writeTar } from '../tar.mjs';

/** Writes a layer into a folder of its own, and returns it. */
export async function writeLayer(folder, name, entries, mtime) {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'layer.tar.gz');
  const unpacked = new Counter();
  const packed = new Counter();
  // GNU gzip writes the same bytes on every machine; zlib's differ from one version of Node and one processor to the next.
  // -9 takes three times as long as -6 and saves 0.6 % of Node.
  const gzip = spawn('gzip', ['-6', '--no-name'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve, reject) => {
    gzip.once('error', reject);
    gzip.once('close', (code) =>
      code === 0 ? resolve() : reject(new Failure(`gzip failed with exit code ${code}`)),
    );
  });
  ended.catch(() => {}); // it is awaited below, unless a pipeline fails first
  try {
    await Promise.all([
      pipeline(Readable.from(writeTar(entries, { mtime })), unpacked, gzip.stdin),
      pipeline(gzip.stdout, packed, createWriteStream(file)),
      ended,
    ]);
  } catch (error) {
    gzip.kill();
    throw error;
  }
  const layer = {
    name,
    digest: packed.digest(),
    diffId: unpacked.digest(),
    size: packed.size,
    unpackedSize: unpacked.size,
  };
  writeFileSync(join(folder, 'layer.json'), JSON.stringify(layer));
  return { ...layer, file };
}

/** A layer that was written there. */
export function layerIn(folder) {
  return {
    ...JSON.parse(readFileSync(join(folder, 'layer.json'), 'utf8')),
    file: join(folder, 'layer.tar.gz'),
  };
}

export function digestOf(bytes) {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Passes everything on, and knows how much it was and its digest. */
class Counter extends Transform {
  #hash = createHash('sha256');
  size = 0;

  _transform(chunk, _, done) {
    this.#hash.update(chunk);
    this.size += chunk.length;
    done(undefined, chunk);
  }

  digest() {
    return `sha256:${this.#hash.digest('hex')}`;
  }
}
