/** Files and directories in; the objects that a source emits, and what it reports, out. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManifestSource } from '../../../src/sources/manifests/source.ts';
import { type Recorder, recorder } from '../recorder.ts';

let folder = '';
let source: ManifestSource;
let recorded: Recorder;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-manifests-'));
  recorded = recorder();
});

afterEach(async () => {
  await source.stop();
  rmSync(folder, { recursive: true });
});

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

function remove(name: string): void {
  rmSync(join(folder, name), { recursive: true });
}

function move(from: string, to: string): void {
  renameSync(join(folder, from), join(folder, to));
}

function link(target: string, name: string): void {
  symlinkSync(target, join(folder, name));
}

function node(name: string, zone = 'z'): string {
  return `kind: Node\nmetadata:\n  name: ${name}\n  labels: {topology.kubernetes.io/zone: ${zone}}\n`;
}

function told(): readonly string[] {
  return recorded.told().map((line) => line.replaceAll(`${folder}/`, ''));
}

async function start(...names: readonly string[]): Promise<readonly string[]> {
  source = new ManifestSource(names.map((name) => join(folder, name)));
  await source.start(recorded.events);
  return told();
}

/** What is emitted until the files are read as they are now. */
async function next(): Promise<readonly string[]> {
  await source.refresh();
  return told();
}

/** So many lines, which come without being asked for. */
async function noticed(count: number): Promise<readonly string[]> {
  const lines: string[] = [];
  await vi.waitUntil(() => lines.push(...told()) >= count, { timeout: 30_000, interval: 5 });
  return lines;
}

const stays = (file: string, ...ids: readonly string[]): string =>
  `${file}: warning: until this is corrected, what it said before stays: ${ids.join(', ')}`;
const twice = (loser: string, winner: string): string =>
  `${loser}: warning: Node n: is also defined at ${winner}, and that one is used (expected each object once)`;
const BAD_ZONE =
  'error: Node n: metadata.labels.topology.kubernetes.io/zone a list is not text (expected text)';

describe('paths', () => {
  it('are files of any name, and directories, which are read to the bottom', async () => {
    write('dir/b.yml', node('b'));
    write('dir/a.yaml', node('a'));
    write('dir/sub/deep/c.JSON', JSON.stringify({ kind: 'Node', metadata: { name: 'c' } }));
    for (const name of ['notes.txt', '.hidden.yaml', '.git/x.yaml', 'b.yml~']) write(`dir/${name}`, '[');
    write('single.conf', `\ufeff${node('s')}`);
    expect(await start('dir', 'single.conf')).toEqual([
      '+ Node a in z',
      '+ Node b in z',
      '+ Node c',
      '+ Node s in z',
      'synced',
    ]);
  });

  it('that lead to one file give it once', async () => {
    write('dir/a.yaml', node('a'));
    link('a.yaml', 'dir/b.yaml');
    link('..', 'dir/loop');
    link('dir', 'link');
    expect(await start('dir/a.yaml', 'dir', 'link')).toEqual(['+ Node a in z', 'synced']);
  });

  it('win in their order when they define the same object', async () => {
    write('dir/a.yaml', node('n', 'a'));
    write('dir/b.yaml', `# moved\n${node('n', 'b')}`);
    expect(await start('dir/b.yaml', 'dir')).toEqual([
      twice('dir/a.yaml:1', 'dir/b.yaml:2'),
      '+ Node n in b',
      'synced',
    ]);
  });

  it('that are not there, or cannot be read, are fatal at the start: nothing is emitted', async () => {
    write('a.yaml', node('a'));
    execFileSync('mkfifo', [join(folder, 'fifo')]);
    link('nowhere', 'link.yaml');
    const all = `manifests: ${folder}/none does not exist; manifests: ${folder}/fifo is neither a file nor a directory; manifests: ${folder}/link.yaml is a link to something that does not exist`;
    await expect(start('a.yaml', 'none', 'fifo', 'link.yaml')).rejects.toThrow(all);
    expect(told()).toEqual([]);
  });
});

describe('a directory', () => {
  it('without manifests is a warning: another may have been meant', async () => {
    write('dir/sub/notes.txt', '');
    expect(await start('dir')).toEqual([
      'dir: warning: has no file whose name ends in .yaml, .yml or .json',
      'synced',
    ]);
  });

  it('may have what cannot be read: each is an error, and costs nothing else', async () => {
    write('dir/a.yaml', node('a'));
    write('dir/binary.yaml', new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0]));
    write('dir/latin.yaml', new Uint8Array([0x6b, 0xe4, 0x73]));
    write('dir/utf16.yaml', Buffer.from(`\ufeff${node('n')}`, 'utf16le'));
    truncateSync(write('dir/large.yaml', ''), 65 * 1024 * 1024);
    execFileSync('mkfifo', [join(folder, 'dir/fifo.yaml')]);
    link('nowhere', 'dir/gone.yaml');
    link('self.yaml', 'dir/self.yaml');
    link('/dev/zero', 'dir/zero.yaml');
    link('nowhere', 'dir/other');
    expect(await start('dir')).toEqual([
      'dir/gone.yaml: error: is a link to something that does not exist',
      'dir/self.yaml: error: is a link that leads to itself',
      'dir/binary.yaml: error: is not a text in UTF-8',
      'dir/large.yaml: error: is longer than 64 MiB; split it into several files',
      'dir/latin.yaml: error: is not a text in UTF-8',
      'dir/utf16.yaml: error: is not a text in UTF-8',
      '+ Node a in z',
      'synced',
    ]);
  });
});

describe('what changes', () => {
  it('is emitted, and nothing else', async () => {
    write('a.yaml', `${node('n', 'one')}---\n${node('m', 'one')}`);
    expect(await start('.')).toEqual(['+ Node n in one', '+ Node m in one', 'synced']);
    write('a.yaml', `# a comment\n${node('n', 'two')}---\n${node('m', 'one')}`);
    expect(await next()).toEqual(['+ Node n in two']);
    expect(source.locate('Node m')).toBe(`${folder}/a.yaml:7`);
    write('b.yaml', node('new', 'one'));
    expect(await next()).toEqual(['+ Node new in one']);
    write('a.yaml', node('m', 'one'));
    expect(await next()).toEqual(['- Node n']);
    move('b.yaml', 'c.yaml');
    expect(await next()).toEqual([]);
    remove('c.yaml');
    expect(await next()).toEqual(['- Node new']);
    write('a.yaml', '');
    expect(await next()).toEqual(['- Node m']);
  });

  it('is noticed in files that editors write beside and rename', async () => {
    write('a.yaml', node('n', 'one'));
    await start('a.yaml');
    for (const zone of ['two', 'three']) {
      write('.a.yaml.swp', node('n', zone));
      move('.a.yaml.swp', 'a.yaml');
      expect(await noticed(1)).toEqual([`+ Node n in ${zone}`]);
    }
  });

  it('is noticed in directories that come and go', async () => {
    write('a.yaml', node('a', 'one'));
    await start('.');
    write('sub/deep/b.yaml', node('b', 'one'));
    expect(await noticed(1)).toEqual(['+ Node b in one']);
    write('sub/deep/b.yaml', node('b', 'two'));
    expect(await noticed(1)).toEqual(['+ Node b in two']);
    remove('sub');
    expect(await noticed(1)).toEqual(['- Node b']);
  });

  it('is noticed in a root that goes, comes back, and is replaced', async () => {
    write('root/a.yaml', node('a', 'one'));
    write('other/a.yaml', node('a', 'two'));
    await start('root');
    move('root', 'old');
    expect(await noticed(2)).toEqual(['root: error: does not exist', '- Node a']);
    move('other', 'root');
    expect(await noticed(1)).toEqual(['+ Node a in two']);
    write('root/a.yaml', node('a', 'three'));
    expect(await noticed(1)).toEqual(['+ Node a in three']);
  });

  it('is noticed in a mounted ConfigMap', async () => {
    const version = (name: string, zone: string): void => {
      write(`${name}/a.yaml`, node('a', zone));
      link(name, '..data_tmp');
      move('..data_tmp', '..data');
    };
    version('..one', 'one');
    link('..data/a.yaml', 'a.yaml');
    expect(await start('.')).toEqual(['+ Node a in one', 'synced']);
    version('..two', 'two');
    expect(await noticed(1)).toEqual(['+ Node a in two']);
    remove('..one');
    expect(await next()).toEqual([]);
  });

  it('is not emitted after stop', async () => {
    write('a.yaml', node('n', 'one'));
    await start('.');
    write('a.yaml', node('n', 'two'));
    await source.stop();
    expect(await next()).toEqual([]);
  });
});

describe('the last valid version stays', () => {
  it('of an object that cannot be used, and of all that a broken document may have had', async () => {
    write('a.yaml', `${node('n', 'one')}---\n${node('m', 'one')}`);
    await start('.');

    write('a.yaml', `${node('n', '[a, b]')}---\n${node('m', 'two')}`);
    expect(await next()).toEqual([`a.yaml:1: ${BAD_ZONE}`, '+ Node m in two']);

    write('a.yaml', `${node('n', '{')}---\n${node('m', 'three')}`);
    expect(await next()).toEqual([
      'a.yaml:5: error: Flow map in block collection must be sufficiently indented and end with a }',
      stays('a.yaml', 'Node n'),
      '+ Node m in three',
    ]);
    expect(source.problems).toHaveLength(2);

    write('a.yaml', `${node('N')}---\n${node('m', 'three')}`);
    expect(await next()).toEqual([expect.stringContaining('a.yaml:1: error: Node: metadata.name "N" ')]);

    write('a.yaml', `${node('n', 'four')}---\n${node('m', 'three')}`);
    expect(await next()).toEqual(['+ Node n in four']);
    expect(source.problems).toEqual([]);

    write('a.yaml', '\u0000');
    write('b.yaml', node('other'));
    expect(await next()).toEqual([
      'a.yaml: error: is not a text in UTF-8',
      stays('a.yaml', 'Node n', 'Node m'),
      '+ Node other in z',
    ]);
    remove('b.yaml');
    expect(await next()).toEqual(['- Node other']);

    write('a.yaml', node('m', 'three'));
    expect(await next()).toEqual(['- Node n']);
  });

  it('of an object that moved to another file and was broken there', async () => {
    write('a.yaml', node('n', 'one'));
    await start('.');
    write('b.yaml', node('n', '[a, b]'));
    remove('a.yaml');
    expect(await next()).toEqual([`b.yaml:1: ${BAD_ZONE}`]);
  });

  it('but not before what another file says now', async () => {
    write('a.yaml', node('n', 'one'));
    await start('.');
    write('a.yaml', '[');
    write('b.yaml', node('n', 'two'));
    expect(await next()).toEqual(['a.yaml:1: error: Flow sequence must end with a ]', '+ Node n in two']);
  });

  it('of a file that may not be read any more', async () => {
    write('dir/a.yaml', node('n', 'one'));
    chmodSync(folder, 0o755);
    await start('dir');
    chmodSync(join(folder, 'dir'), 0);
    const mayRead = becomeNobody();
    try {
      const message = 'dir: error: may not be read by user 65534 (permission denied)';
      expect((await next()).slice(0, 2)).toEqual(mayRead ? [] : [message, stays('dir', 'Node n')]);
    } finally {
      becomeRootAgain();
      chmodSync(join(folder, 'dir'), 0o755);
    }
    expect(await next()).toEqual([]);
    expect(source.problems).toEqual([]);
  });
});

const isRoot = process.geteuid?.() === 0;

/** Returns whether files may still be read: root may read everything, and in a user namespace there may be nobody else to become. */
function becomeNobody(): boolean {
  if (!isRoot) return false;
  try {
    process.seteuid?.(65534);
    return false;
  } catch {
    return true;
  }
}

function becomeRootAgain(): void {
  if (isRoot) process.seteuid?.(0);
}

it('an object that is defined twice comes from the first file, also while that is broken', async () => {
  write('a.yaml', node('n', 'one'));
  write('b.yaml', node('n', 'two'));
  const warning = twice('b.yaml:1', 'a.yaml:1');
  expect(await start('.')).toEqual([warning, '+ Node n in one', 'synced']);
  write('a.yaml', node('n', '[a, b]'));
  expect(await next()).toEqual([`a.yaml:1: ${BAD_ZONE}`]);
  remove('a.yaml');
  expect(await next()).toEqual(['+ Node n in two']);
  write('a.yaml', node('n', 'three'));
  expect(await next()).toEqual([warning, '+ Node n in three']);
});

it('a large file does not hold up everything else while it is read', async () => {
  const documents = Array.from({ length: 4000 }, (_, index) => node(`n${index}`));
  write('a.yaml', documents.join('---\n'));
  let turns = 0;
  let isReading = true;
  const count = (): void => {
    turns += 1;
    if (isReading) setImmediate(count);
  };
  const started = start('.');
  setImmediate(count);
  expect(await started).toHaveLength(4001);
  isReading = false;
  expect(turns).toBeGreaterThan(10);
});
