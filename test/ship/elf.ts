/** Programs and libraries in ELF's format (64 bits, little-endian), and the libraries that they ask for. */
import { lstatSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathsOf } from './rootfs.ts';

const DYNAMIC = 6;
const NEEDED = 1n;
const STRINGS = 5n;

interface Libraries {
  readonly programs: readonly string[];
  /** `PROGRAM: LIBRARY` */
  readonly missing: readonly string[];
}

export function neededLibraries(rootfs: string): Libraries {
  const paths = pathsOf(rootfs);
  const present = new Set(paths.map((path) => basename(path)));
  const programs = paths.filter(
    (path) => lstatSync(join(rootfs, path)).isFile() && isElf(join(rootfs, path)),
  );
  const missing = programs.flatMap((path) =>
    needed(readFileSync(join(rootfs, path))).flatMap((name) =>
      present.has(name) ? [] : [`${path}: ${name}`],
    ),
  );
  return { programs, missing };
}

function isElf(path: string): boolean {
  return readFileSync(path).subarray(0, 4).toString('latin1') === '\x7fELF';
}

function needed(file: Buffer): readonly string[] {
  const sections = sectionsOf(file);
  const dynamic = sections.find(({ type }) => type === DYNAMIC);
  if (!dynamic) return [];
  const entries = [];
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.size; at += 16)
    entries.push({ tag: file.readBigUInt64LE(at), value: file.readBigUInt64LE(at + 8) });
  const address = entries.find(({ tag }) => tag === STRINGS)?.value;
  const strings = sections.find((section) => section.address === address);
  if (!strings) throw new Error('a dynamic section without strings');
  return entries
    .filter(({ tag }) => tag === NEEDED)
    .map(({ value }) => {
      const start = strings.offset + Number(value);
      return file.toString('latin1', start, file.indexOf(0, start));
    });
}

interface Section {
  readonly type: number;
  readonly address: bigint;
  readonly offset: number;
  readonly size: number;
}

function sectionsOf(file: Buffer): readonly Section[] {
  const [start, size, count] = [
    Number(file.readBigUInt64LE(0x28)),
    file.readUInt16LE(0x3a),
    file.readUInt16LE(0x3c),
  ];
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    return {
      type: file.readUInt32LE(at + 4),
      address: file.readBigUInt64LE(at + 16),
      offset: Number(file.readBigUInt64LE(at + 24)),
      size: Number(file.readBigUInt64LE(at + 32)),
    };
  });
}
