/**
 * The file of a record: read whole at a start, appended to while Junction runs, and replaced by renaming. It is for
 * nobody else, and no link leads Junction to another file: what is not a plain file of this user in a directory of this
 * user is refused.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { lstatSync, readFileSync, readlinkSync, renameSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, errorCode } from '../../errors.ts';
import { BUILD, VERSION } from '../../version.ts';

const FILE = 'written.bin';
const OTHERS_MAY_WRITE = 0o022;
const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
/** No record is as large; whatever has this name is not read into memory. */
const MOST_BYTES = 1 << 30;

export class RecordFile {
  readonly #descriptor: number;
  readonly #path: string;
  /** Where it is as long as it is not complete. */
  #newPath: string | undefined;
  #bytes: number;

  private constructor(descriptor: number, path: string, newPath: string | undefined, bytes: number) {
    this.#descriptor = descriptor;
    this.#path = path;
    this.#newPath = newPath;
    this.#bytes = bytes;
  }

  /** The one that is there, with all that is in it. `undefined`: there is none. Throws where it cannot be trusted. */
  static open(directory: string): { readonly file: RecordFile; readonly bytes: Uint8Array } | undefined {
    const path = join(directory, FILE);
    checkDirectory(directory);
    let descriptor: number;
    try {
      descriptor = openSync(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
    try {
      const stat = fstatSync(descriptor);
      if (!stat.isFile()) throw new Error(`${path} is no plain file`);
      if (stat.uid !== process.geteuid?.() || (stat.mode & OTHERS_MAY_WRITE) !== 0)
        throw new Error(`${path} may be changed by others`);
      if (stat.size > MOST_BYTES) throw new Error(`${path} has ${stat.size} bytes`);
      const bytes = readWhole(descriptor, stat.size);
      return { file: new RecordFile(descriptor, path, undefined, bytes.length), bytes };
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  /** A new one, that takes the place of the one that is there once it is complete. */
  static create(directory: string): RecordFile {
    const path = join(directory, FILE);
    const newPath = `${path}.new`;
    checkDirectory(directory);
    removeFile(newPath);
    const flags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW;
    return new RecordFile(openSync(newPath, flags, 0o600), path, newPath, 0);
  }

  /** Deletes whatever has its name. */
  static remove(directory: string): void {
    for (const name of [FILE, `${FILE}.new`]) attempt(() => removeFile(join(directory, name)));
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** All of it or an error. */
  append(bytes: Uint8Array): void {
    for (let offset = 0; offset < bytes.length; ) offset += writeSync(this.#descriptor, bytes, offset);
    this.#bytes += bytes.length;
  }

  /** From now on this is the record. */
  complete(): void {
    if (this.#newPath === undefined) return;
    renameSync(this.#newPath, this.#path);
    this.#newPath = undefined;
  }

  /** What is in it holds no more, whoever reads it. */
  void(): void {
    attempt(() => ftruncateSync(this.#descriptor, 0));
    attempt(() => unlinkSync(this.#newPath ?? this.#path));
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

function checkDirectory(directory: string): void {
  const stat = lstatSync(directory);
  if (!stat.isDirectory()) throw new Error(`${directory} is no directory`);
  if (stat.uid !== process.geteuid?.() || (stat.mode & OTHERS_MAY_WRITE) !== 0)
    throw new Error(`${directory} may be changed by others`);
}

function readWhole(descriptor: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let length = 0;
  while (length < size) {
    const count = readSync(descriptor, bytes, length, size - length, length);
    if (count === 0) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

/** Which boot of the machine this is. */
export function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** The network namespace of this process: `net:[4026531840]`. */
export function networkNamespace(): string {
  return readlinkSync('/proc/self/ns/net');
}

/** Of the program that runs: another build may write other rules for the same plan. */
export function programIdentity(): string {
  const [, path = ''] = process.argv;
  const stat = attempt(() => statSync(path));
  return [VERSION, BUILD.commit, BUILD.date, path, stat?.size, stat?.mtimeMs].join(' ');
}
