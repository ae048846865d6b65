/**
 * Other versions of iptables, from Debian's archive: unpacked, not installed, and run with the C library that they were built
 * for. Debian replaces packages in time; a version that it no longer has is skipped, and said so.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'vitest';

const ARCHIVE = 'http://deb.debian.org/debian';
const LOCK = join(import.meta.dirname, '../versions-amd64.lock');
const CACHE = join(import.meta.dirname, '../../../../../node_modules/.cache/junction-tests');
const LIMIT_MS = 60_000;
const PROGRAMS = ['iptables', 'ip6tables'].flatMap((program) =>
  ['', '-restore', '-save'].map((suffix) => ({ program, suffix })),
);

interface LockedFile {
  readonly version: string;
  readonly path: string;
  readonly sha256: string;
}

function lockedFiles(version: string): readonly LockedFile[] {
  return readFileSync(LOCK, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [of = '', path = '', sha256 = ''] = line.split(' ');
      return { version: of, path, sha256 };
    })
    .filter((file) => file.version === version);
}

/** A folder with `iptables-nft`, `iptables-nft-restore` and their like, of this version. */
export async function otherVersion(version: string, context: Pick<TestContext, 'skip'>): Promise<string> {
  if (process.arch !== 'x64') context.skip(`iptables ${version} is locked for amd64 alone`);
  const folder = join(CACHE, `iptables-${version}`);
  if (!existsSync(folder)) {
    const absent = await unpack(version, folder);
    if (absent !== undefined) context.skip(absent);
  }
  return join(folder, 'bin');
}

/** Returns why it cannot be had. */
async function unpack(version: string, folder: string): Promise<string | undefined> {
  await mkdir(CACHE, { recursive: true });
  const scratch = await mkdtemp(join(CACHE, 'iptables-new-'));
  try {
    for (const file of lockedFiles(version)) {
      const deb = await download(file);
      if (typeof deb === 'string') return deb;
      const path = join(scratch, 'package.deb');
      await writeFile(path, deb);
      const { status, stderr } = spawnSync('dpkg-deb', ['-x', path, scratch], { encoding: 'utf8' });
      if (status !== 0) throw new Error(`dpkg-deb -x ${file.path}: ${stderr}`);
    }
    await writePrograms(scratch, folder);
    await rename(scratch, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    return undefined;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function download({ version, path, sha256 }: LockedFile): Promise<Uint8Array | string> {
  const url = `${ARCHIVE}/${path}`;
  try {
    const reply = await fetch(url, { signal: AbortSignal.timeout(LIMIT_MS) });
    if (!reply.ok) return `iptables ${version}: Debian's archive answers ${reply.status} for ${url}`;
    const data = new Uint8Array(await reply.arrayBuffer());
    const found = createHash('sha256').update(data).digest('hex');
    if (found !== sha256) throw new WrongPackage(`${url} has ${found}, and ${sha256} is locked`);
    return data;
  } catch (error) {
    if (error instanceof WrongPackage) throw error;
    return `iptables ${version}: Debian's archive cannot be reached: ${String(error)}`;
  }
}

class WrongPackage extends Error {}

/** Scripts that start the program by its own loader. `folder`: where `root` will be. */
async function writePrograms(root: string, folder: string): Promise<void> {
  const libraries = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'];
  const isLoader = (name: string): boolean => /^ld-(?:linux-x86-64\.so\.2|[\d.]+\.so)$/.test(name);
  const loader = libraries
    .filter((each) => existsSync(join(root, each)))
    .flatMap((each) =>
      readdirSync(join(root, each))
        .filter(isLoader)
        .map((name) => join(each, name)),
    )[0];
  if (loader === undefined) throw new Error('no loader in libc6');
  const paths = libraries.map((each) => join(folder, each)).join(':');
  await mkdir(join(root, 'bin'));
  for (const { program, suffix } of PROGRAMS) {
    const file = join(root, 'bin', `${program}-nft${suffix}`);
    const command = [loader, '--library-path', paths, 'usr/sbin/xtables-nft-multi', `${program}${suffix}`]
      .map((part) => (part.startsWith('usr/') || part === loader ? join(folder, part) : part))
      .join(' ');
    const extensions = join(folder, 'usr/lib/x86_64-linux-gnu/xtables');
    await writeFile(file, `#!/bin/sh\nXTABLES_LIBDIR=${extensions} exec ${command} "$@"\n`);
    await chmod(file, 0o755);
  }
}
