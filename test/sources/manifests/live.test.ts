import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManifestSource, type ManifestSourceOptions } from '../../../src/sources/manifests/manifestSource.ts';
import { type Recorder, recorder } from '../recorder.ts';

let directory = '';
let source: ManifestSource;
let recorded: Recorder;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'junction-live-'));
  recorded = recorder();
});

afterEach(async () => {
  await source.stop();
  rmSync(directory, { recursive: true });
});

function write(name: string, content: string): void {
  writeFileSync(join(directory, name), content);
}

function node(name: string, zone: string): string {
  return `kind: Node\nmetadata:\n  name: ${name}\n  labels: {topology.kubernetes.io/zone: ${zone}}\n`;
}

async function start(...paths: readonly string[]): Promise<readonly string[]> {
  return startWith({}, ...paths);
}

async function startWith(
  options: ManifestSourceOptions,
  ...paths: readonly string[]
): Promise<readonly string[]> {
  source = new ManifestSource(
    paths.map((path) => join(directory, path)),
    { debounceMilliseconds: 20, ...options },
  );
  await source.start(recorded.events);
  return told();
}

function told(): readonly string[] {
  return recorded.told().map((line) => line.replaceAll(`${directory}/`, ''));
}

/** What is told until `count` lines have come, and a moment longer in case there are more. */
async function next(count: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let waited = 0; lines.length < count && waited < 100_000; waited += 10) {
    await sleep(10);
    lines.push(...told());
  }
  await sleep(80);
  return [...lines, ...told()];
}

describe('live editing', () => {
  it('tells differences only', async () => {
    write('a.yaml', `${node('n', 'one')}---\n${node('m', 'one')}`);
    expect(await start('.')).toEqual(['+ Node n in one', '+ Node m in one', 'synced']);

    write('a.yaml', `# a comment\n${node('n', 'two')}---\n${node('m', 'one')}`);
    expect(await next(1)).toEqual(['+ Node n in two']);

    write('b.yaml', node('new', 'one'));
    expect(await next(1)).toEqual(['+ Node new in one']);

    write('a.yaml', node('m', 'one'));
    expect(await next(1)).toEqual(['- Node n']);

    renameSync(join(directory, 'b.yaml'), join(directory, 'c.yaml'));
    expect(await next(0)).toEqual([]);

    rmSync(join(directory, 'c.yaml'));
    expect(await next(1)).toEqual(['- Node new']);
  });

  it('follows editors that write beside the file and rename', async () => {
    write('a.yaml', node('n', 'one'));
    await start('a.yaml');
    for (const zone of ['two', 'three']) {
      write('.a.yaml.swp', node('n', zone));
      renameSync(join(directory, '.a.yaml.swp'), join(directory, 'a.yaml'));
      expect(await next(1)).toEqual([`+ Node n in ${zone}`]);
    }
  });

  it('follows directories that come and go', async () => {
    write('a.yaml', node('a', 'one'));
    await start('.');
    mkdirSync(join(directory, 'sub/deep'), { recursive: true });
    write('sub/deep/b.yaml', node('b', 'one'));
    expect(await next(1)).toEqual(['+ Node b in one']);
    write('sub/deep/b.yaml', node('b', 'two'));
    expect(await next(1)).toEqual(['+ Node b in two']);
    rmSync(join(directory, 'sub'), { recursive: true });
    expect(await next(1)).toEqual(['- Node b']);
  });

  it('follows a root that is replaced', async () => {
    mkdirSync(join(directory, 'root'));
    write('root/a.yaml', node('a', 'one'));
    await start('root');
    mkdirSync(join(directory, 'other'));
    write('other/a.yaml', node('a', 'two'));
    renameSync(join(directory, 'root'), join(directory, 'old'));
    renameSync(join(directory, 'other'), join(directory, 'root'));
    expect(await next(1)).toEqual(['+ Node a in two']);
    write('root/a.yaml', node('a', 'three'));
    expect(await next(1)).toEqual(['+ Node a in three']);
  });

  it('follows a ConfigMap', async () => {
    const version = (name: string, zone: string): void => {
      mkdirSync(join(directory, name));
      write(`${name}/a.yaml`, node('a', zone));
      symlinkSync(name, join(directory, '..data_tmp'));
      renameSync(join(directory, '..data_tmp'), join(directory, '..data'));
    };
    version('..one', 'one');
    symlinkSync('..data/a.yaml', join(directory, 'a.yaml'));
    expect(await start('.')).toEqual(['+ Node a in one', 'synced']);
    version('..two', 'two');
    expect(await next(1)).toEqual(['+ Node a in two']);
    rmSync(join(directory, '..one'), { recursive: true });
    expect(await next(0)).toEqual([]);
  });
});

describe('broken manifests', () => {
  it('leave the last good version in force until they are mended', async () => {
    write('a.yaml', `${node('n', 'one')}---\n${node('m', 'one')}`);
    await start('.');

    write('a.yaml', `${node('n', '[a, b]')}---\n${node('m', 'two')}`);
    expect(await next(2)).toEqual([
      expect.stringContaining(
        'a.yaml:4:12: error: Node n: metadata.labels.topology.kubernetes.io/zone a list is not',
      ),
      '+ Node m in two',
    ]);

    write('a.yaml', `${node('n', '{')}---\n${node('m', 'three')}`);
    expect(await next(3)).toEqual([
      'a.yaml:5:1: error: Flow map in block collection must be sufficiently indented and end with a }',
      'a.yaml: warning: until this is corrected, what it said before stays: Node n',
      '+ Node m in three',
    ]);
    expect(source.problems).toHaveLength(2);

    write('a.yaml', `${node('n', 'four')}---\n${node('m', 'three')}`);
    expect(await next(1)).toEqual(['+ Node n in four']);
    expect(source.problems).toEqual([]);

    write('a.yaml', '\u0000');
    expect(await next(2)).toEqual([
      'a.yaml: error: is not a text file (expected a UTF-8 text with YAML or JSON)',
      'a.yaml: warning: until this is corrected, what it said before stays: Node n, Node m',
    ]);

    write('a.yaml', node('m', 'three'));
    expect(await next(1)).toEqual(['- Node n']);
  });

  it('keep an object whose name was broken', async () => {
    write('a.yaml', node('n', 'one'));
    await start('.');
    write('a.yaml', node('N', 'one'));
    expect(await next(2)).toEqual([
      expect.stringContaining('a.yaml:3:9: error: Node: metadata.name "N" is not a valid name'),
      'a.yaml: warning: until this is corrected, what it said before stays: Node n',
    ]);
  });

  it('that are there from the start are left out', async () => {
    write('a.yaml', `${node('N', 'one')}---\n${node('m', 'one')}`);
    expect(await start('.')).toEqual([
      expect.stringContaining('a.yaml:3:9: error: '),
      '+ Node m in one',
      'synced',
    ]);
  });

  it('keep an object that moved to another file and was broken there', async () => {
    write('a.yaml', node('n', 'one'));
    await start('.');
    write('.b', node('n', '[a, b]'));
    renameSync(join(directory, '.b'), join(directory, 'b.yaml'));
    rmSync(join(directory, 'a.yaml'));
    expect(await next(1)).toEqual([expect.stringContaining('b.yaml:4:12: error: Node n: ')]);
  });
});

describe('an object that is defined twice', () => {
  it('comes from the first file, and from the second when that goes', async () => {
    write('a.yaml', node('n', 'one'));
    write('b.yaml', node('n', 'two'));
    expect(await start('.')).toEqual([
      expect.stringContaining('b.yaml:1:1: warning: Node n: '),
      '+ Node n in one',
      'synced',
    ]);
    rmSync(join(directory, 'a.yaml'));
    expect(await next(1)).toEqual(['+ Node n in two']);
    write('a.yaml', node('n', 'three'));
    expect(await next(2)).toEqual([
      expect.stringContaining('b.yaml:1:1: warning: Node n: '),
      '+ Node n in three',
    ]);
  });

  it('stays with the first while that is broken', async () => {
    write('a.yaml', node('n', 'one'));
    write('b.yaml', node('n', 'two'));
    await start('.');
    write('a.yaml', node('n', '[a, b]'));
    expect(await next(1)).toEqual([expect.stringContaining('a.yaml:4:12: error: Node n: ')]);
  });
});

describe('start', () => {
  it.each([[['nowhere.yaml']], [['.', 'nowhere.yaml']]])('fails for %j', async (paths) => {
    await expect(start(...paths)).rejects.toThrow(
      `manifests: ${join(directory, 'nowhere.yaml')} does not exist`,
    );
    expect(told()).toEqual([]);
  });

  it('tells nothing after stop', async () => {
    write('a.yaml', node('n', 'one'));
    await start('.');
    write('a.yaml', node('n', 'two'));
    await source.stop();
    expect(await next(0)).toEqual([]);
  });
});

describe('what Kubernetes does not know', () => {
  const typo = (zone: string): string => `apiVersion: v1\n${node('n', zone)}  lables: {}\n`;
  const UNKNOWN = 'Node n: unknown field "metadata.lables"; did you mean "labels"?';

  it('is told once, however often the directory is looked at, and again when it is elsewhere', async () => {
    write('a.yaml', typo('one'));
    expect(await startWith({ pollMilliseconds: 10 }, '.')).toEqual([
      `a.yaml:6:3: warning: ${UNKNOWN}`,
      '+ Node n in one',
      'synced',
    ]);
    write('b.yaml', node('m', 'one'));
    expect(await next(1)).toEqual(['+ Node m in one']);
    write('a.yaml', `\n${typo('two')}`);
    expect(await next(2)).toEqual([`a.yaml:7:3: warning: ${UNKNOWN}`, '+ Node n in two']);
  });

  it('with strict, a field leaves the last good version in force', async () => {
    write('a.yaml', `apiVersion: v1\n${node('n', 'one')}`);
    await startWith({ strict: true }, '.');
    write('a.yaml', typo('two'));
    expect(await next(1)).toEqual([`a.yaml:6:3: error: ${UNKNOWN}`]);
    write('a.yaml', `apiVersion: v1\n${node('n', 'three')}`);
    expect(await next(1)).toEqual(['+ Node n in three']);
  });

  it('with strict, a kind leaves what the file had in force; without, it is another kind', async () => {
    const good = `apiVersion: v1\n${node('n', 'one')}`;
    const said = 'a.yaml:2:7: SEVERITY: no matches for kind "Nod" in version "v1"; did you mean "Node"?';
    write('a.yaml', good);
    await startWith({ strict: true }, '.');
    write('a.yaml', good.replace('Node', 'Nod'));
    expect(await next(2)).toEqual([
      said.replace('SEVERITY', 'error'),
      'a.yaml: warning: until this is corrected, what it said before stays: Node n',
    ]);
    await source.stop();

    write('a.yaml', good);
    await start('.');
    write('a.yaml', good.replace('Node', 'Nod'));
    expect(await next(2)).toEqual([said.replace('SEVERITY', 'warning'), '- Node n']);
  });
});
