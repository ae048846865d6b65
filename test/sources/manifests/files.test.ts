import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readContent } from '../../../src/sources/manifests/scan.ts';
import { loadManifests } from '../../../src/sources/manifests/store.ts';
import { printSourceProblem } from '../../../src/sources/source.ts';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'junction-manifests-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

function write(name: string, content: string | Uint8Array): string {
  const path = join(directory, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

const node = (name: string, zone = 'z'): string =>
  `kind: Node\nmetadata: {name: ${name}, labels: {topology.kubernetes.io/zone: ${zone}}}\n`;

function warning(loser: string, winner: string): string {
  return `dir/${loser}: warning: Node n: is also defined at dir/${winner}, and that one is used (expected each object once)`;
}

async function load(
  ...names: readonly string[]
): Promise<{ nodes: readonly string[]; problems: readonly string[] }> {
  const { nodes, problems } = await loadManifests(names.map((name) => join(directory, name)));
  return {
    nodes: nodes.map(({ name, zone }) => `${name} ${zone}`),
    problems: problems.map((problem) => printSourceProblem(problem).replaceAll(`${directory}/`, '')),
  };
}

describe('paths', () => {
  it('may be files of any name, and directories, which are read to the bottom', async () => {
    write('dir/b.yml', node('b'));
    write('dir/a.yaml', node('a'));
    write('dir/sub/deep/c.json', JSON.stringify({ kind: 'Node', metadata: { name: 'c' } }));
    write('dir/notes.txt', 'not: [a manifest');
    write('dir/.hidden.yaml', 'not: [a manifest');
    write('dir/.git/x.yaml', 'not: [a manifest');
    write('dir/b.yml~', 'not: [a manifest');
    write('single.conf', node('s'));
    expect(await load('dir', 'single.conf')).toEqual({
      nodes: ['a z', 'b z', 'c undefined', 's z'],
      problems: [],
    });
  });

  it('that do not exist are problems', async () => {
    write('a.yaml', node('a'));
    expect(await load('a.yaml', 'b.yaml')).toEqual({
      nodes: ['a z'],
      problems: ['b.yaml: error: does not exist'],
    });
  });

  it('that lead to one file twice give it once', async () => {
    write('dir/a.yaml', node('a'));
    symlinkSync('a.yaml', join(directory, 'dir/b.yaml'));
    symlinkSync('..', join(directory, 'dir/loop'));
    expect(await load('dir/a.yaml', 'dir')).toEqual({ nodes: ['a z'], problems: [] });
  });

  it('may be mounted ConfigMaps', async () => {
    write('map/..2026_01/a.yaml', node('a'));
    symlinkSync('..2026_01', join(directory, 'map/..data'));
    symlinkSync('..data/a.yaml', join(directory, 'map/a.yaml'));
    expect(await load('map')).toEqual({ nodes: ['a z'], problems: [] });
  });

  it('win in their order when they define the same object', async () => {
    write('dir/a.yaml', node('n', 'a'));
    write('dir/b.yaml', `# moved\n${node('n', 'b')}`);
    expect(await load('dir')).toEqual({ nodes: ['n a'], problems: [warning('b.yaml:2:1', 'a.yaml:1:1')] });
    expect(await load('dir/b.yaml', 'dir')).toEqual({
      nodes: ['n b'],
      problems: [warning('a.yaml:1:1', 'b.yaml:2:1')],
    });
  });
});

describe('a directory', () => {
  it('without manifests is a warning: another may have been meant', async () => {
    write('dir/sub/notes.txt', '');
    write('dir/.hidden.yaml', '');
    expect((await load('dir')).problems).toEqual([
      'dir: warning: has no file whose name ends in .yaml, .yml or .json',
    ]);
  });

  it('may say the same as another path', async () => {
    write('dir/a.yaml', node('a'));
    symlinkSync('dir', join(directory, 'link'));
    expect(await load('dir', 'link', 'dir/a.yaml')).toEqual({ nodes: ['a z'], problems: [] });
  });

  it('with a link that leads nowhere, which is an error if its name is that of a manifest', async () => {
    write('dir/a.yaml', node('a'));
    symlinkSync('nowhere', join(directory, 'dir/b.yaml'));
    symlinkSync('c.yaml', join(directory, 'dir/c.yaml'));
    symlinkSync('nowhere', join(directory, 'dir/d'));
    expect(await load('dir')).toEqual({
      nodes: ['a z'],
      problems: [
        'dir/b.yaml: error: is a link to something that does not exist',
        'dir/c.yaml: error: is a link that leads to itself',
      ],
    });
    expect((await load('dir/b.yaml')).problems).toEqual([
      'dir/b.yaml: error: is a link to something that does not exist',
    ]);
  });
});

it('a file that goes away after the directory was listed is simply not there', async () => {
  const gone = { path: join(directory, 'gone.yaml'), size: 1, stamp: '', modifiedAt: 0 };
  expect(await readContent(gone)).toEqual({ kind: 'gone' });
});

it('a name that is not in UTF-8 cannot be asked for', async () => {
  write('dir/a.yaml', node('a'));
  writeFileSync(
    Buffer.concat([Buffer.from(join(directory, 'dir/')), Buffer.from([0xff]), Buffer.from('.yaml')]),
    '',
  );
  expect(await load('dir')).toEqual({
    nodes: ['a z'],
    problems: ['dir/\ufffd.yaml: error: has a name that is not in UTF-8; rename it'],
  });
});

describe('files that cannot be read', () => {
  const expected = '(expected a UTF-8 text with YAML or JSON)';

  it.each<[string, string | Uint8Array, string]>([
    [
      'binary',
      new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]),
      `x.yaml: error: is not a text file ${expected}`,
    ],
    [
      'Latin-1',
      new Uint8Array([0x0a, 0x6b, 0xe4, 0x73]),
      `x.yaml: error: is not in UTF-8 at line 2 ${expected}`,
    ],
    ['UTF-16', Buffer.from(`\ufeff${node('n')}`, 'utf16le'), `x.yaml: error: is in UTF-16 ${expected}`],
  ])('%s', async (_, content, problem) => {
    write('x.yaml', content);
    write('y.yaml', `\ufeff${node('after-a-byte-order-mark')}`);
    expect(await load('.')).toEqual({ nodes: ['after-a-byte-order-mark z'], problems: [problem] });
  });

  it('too large', async () => {
    truncateSync(write('x.yaml', ''), 65 * 1024 * 1024);
    expect((await load('.')).problems).toEqual([
      'x.yaml: error: is 65 MiB long (expected at most 64 MiB; split it into several files)',
    ]);
  });

  it('forbidden', async () => {
    const file = write('x.yaml', node('n'));
    chmodSync(dirname(file), 0o755);
    chmodSync(file, 0);
    const mayRead = becomeNobody();
    try {
      const { problems } = await load('.');
      expect(problems).toEqual(
        mayRead ? [] : ['x.yaml: error: may not be read by user 65534 (permission denied)'],
      );
    } finally {
      becomeRootAgain();
    }
  });
});

const isRoot = process.geteuid?.() === 0;

/** root may read everything, and in a user namespace there may be nobody else to become. Answers whether we still may. */
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
