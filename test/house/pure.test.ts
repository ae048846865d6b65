/** The habits of the house, so far as a machine can check them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { codeOf, filesUnder, roomOf, ROOT } from './sources.ts';

const ALL = [...filesUnder('src'), ...filesUnder('page'), ...filesUnder('lab')];
const PURE_ROOMS: ReadonlySet<string> = new Set([
  'text',
  'model',
  'plan',
  'rules',
  'reconciler',
  'time',
  'explain',
  'diff',
]);
/** The one file beside pure ones that is there to be impure. */
const EDGE = 'src/time/systemClock.ts';
const PURE = ALL.filter(({ path }) => PURE_ROOMS.has(roomOf(path)) && path !== EDGE);

describe('pure folders', () => {
  test('there are some', () => expect(PURE.length).toBeGreaterThan(40));

  const isPure = (name: string): boolean =>
    (name.startsWith('src/') && PURE_ROOMS.has(roomOf(name)) && name !== EDGE) ||
    name === 'src/errors.ts' ||
    name === 'yaml';

  test.each(PURE)('$path imports what is pure', ({ imports }) => {
    expect(imports.filter((name) => !isPure(name))).toEqual([]);
  });

  // Date.parse reads a time that somebody else wrote down; everything else of Date asks the machine.
  const IMPURE =
    /\bDate\b(?!\.parse\b)|\bMath\.random\b|\bprocess\b|\bset(?:Timeout|Interval|Immediate)\b|\bperformance\b|\bcrypto\b|\bfetch\(|\bconsole\b|\bglobalThis\b|\bimport\.meta\b/;

  test.each(PURE)('$path asks nothing of the machine', (file) => {
    expect(IMPURE.exec(codeOf(file))?.[0]).toBeUndefined();
  });

  test('src/errors.ts imports nothing', () => {
    expect(ALL.find(({ path }) => path === 'src/errors.ts')?.imports).toEqual([]);
  });
});

describe('folders know only those before them', () => {
  const INSIDE = ['model', 'plan', 'rules', 'reconciler', 'time', 'explain'];
  const TOOLS = ['errors.ts', 'faults.ts', 'version.ts', 'log', 'text'];
  const EDGES = ['netlink', 'system', 'sources', 'config', 'telemetry', 'proxy', 'modes'];
  const MAY_KNOW: Readonly<Record<string, readonly string[]>> = {
    'errors.ts': [],
    'version.ts': [],
    'faults.ts': [],
    text: [],
    log: ['text', 'faults.ts'],
    time: [],
    model: ['text'],
    plan: ['model'],
    reconciler: ['model', 'plan'],
    rules: ['model', 'plan', 'time', 'reconciler', 'errors.ts'],
    explain: ['model', 'plan', 'rules', 'time', 'text', 'errors.ts'],
    diff: ['model', 'plan', 'rules', 'explain', 'text'],
    system: ['model', 'plan', 'time', ...TOOLS],
    netlink: ['model', 'time', 'system', 'errors.ts', 'faults.ts'],
    sources: ['model', 'time', 'system', ...TOOLS],
    config: ['model', 'plan', 'rules', ...TOOLS],
    telemetry: ['model', 'plan', 'time', 'explain', ...TOOLS],
    proxy: [...INSIDE, 'sources', 'telemetry', 'netlink', ...TOOLS],
    modes: [...INSIDE, 'netlink', 'system', 'config', 'telemetry', 'proxy', ...TOOLS],
    bundle: [...INSIDE, ...EDGES, ...TOOLS],
    ui: ['model', 'time', 'config', 'telemetry', ...TOOLS],
    daemon: [...INSIDE, ...EDGES, ...TOOLS, 'ui'],
    doctor: [...INSIDE, ...EDGES, ...TOOLS, 'daemon'],
    cli: [...INSIDE, ...EDGES, ...TOOLS, 'ui', 'daemon', 'bundle', 'doctor', 'diff'],
    kubectl: [...INSIDE, ...EDGES, ...TOOLS, 'bundle', 'cli'],
    lab: [...INSIDE, ...EDGES, ...TOOLS, 'cli'],
    // What a browser can run.
    page: ['model', 'plan', 'explain', 'text'],
  };

  test('every folder has its place', () => {
    expect(
      [...new Set(ALL.map(({ path }) => roomOf(path)))].filter((part) => !Object.hasOwn(MAY_KNOW, part)),
    ).toEqual([]);
  });

  test('the places are in an order: no folder can know itself through others', () => {
    const settled = new Set<string>();
    let left = Object.keys(MAY_KNOW);
    for (let before = -1; before !== settled.size; ) {
      before = settled.size;
      for (const part of left)
        if ((MAY_KNOW[part] ?? []).every((known) => settled.has(known))) settled.add(part);
      left = left.filter((part) => !settled.has(part));
    }
    expect(left).toEqual([]);
  });

  test.each(ALL)('$path', ({ path, imports }) => {
    const room = roomOf(path);
    const allowed = new Set([room, ...(MAY_KNOW[room] ?? [])]);
    expect(imports.filter((name) => /^(?:src|lab|page)\//.test(name) && !allowed.has(roomOf(name)))).toEqual(
      [],
    );
  });

  test('netlink knows addresses, and nothing of services', () => {
    const known = ALL.filter(({ path }) => roomOf(path) === 'netlink').flatMap(({ imports }) => imports);
    expect(new Set(known.filter((name) => name.startsWith('src/model/')))).toEqual(
      new Set(['src/model/ip.ts']),
    );
  });

  test('nothing in src knows of tests', () => {
    expect(ALL.filter(({ imports }) => imports.some((name) => /^(test|bench|scripts)\//.test(name)))).toEqual(
      [],
    );
  });
});

describe('modes', () => {
  const SAME = ['cleanup', 'client', 'mode', 'prerequisites', 'print', 'proxier', 'reconcile'];

  test.each(['iptables', 'ipvs', 'nftables'])('%s has the files that every mode has', (mode) => {
    const paths = new Set(ALL.map(({ path }) => path));
    expect(SAME.filter((name) => !paths.has(`src/modes/${mode}/${name}.ts`))).toEqual([]);
  });

  test('are behind an interface of at most eight members', () => {
    const text = ALL.find(({ path }) => path === 'src/modes/mode.ts')?.text ?? '';
    const [, members = ''] = /^export interface Mode \{$([\s\S]*?)^\}$/m.exec(text) ?? [];
    const names = [...members.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:]/gm)].map(([, name]) => name);
    expect(names).toContain('open');
    expect(names.length).toBeLessThanOrEqual(8);
  });
});

describe('files', () => {
  test('no file imports itself by way of others in its folder', () => {
    const byPath = new Map(ALL.map((file) => [file.path, file]));
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (path: string, way: readonly string[]): void => {
      if (way.includes(path)) {
        cycles.push([...way.slice(way.indexOf(path)), path].join(' -> '));
        return;
      }
      if (done.has(path)) return;
      for (const name of byPath.get(path)?.imports ?? []) if (byPath.has(name)) visit(name, [...way, path]);
      done.add(path);
    };
    // Types may refer to each other in circles; code must not.
    for (const file of ALL) visit(file.path, []);
    expect(cycles.filter((cycle) => !isTypeOnly(cycle))).toEqual([]);

    function isTypeOnly(cycle: string): boolean {
      const paths = cycle.split(' -> ');
      return paths.slice(0, -1).some((from, index) => {
        const to = paths[index + 1] ?? '';
        const base = to.split('/').at(-1) ?? '';
        const text = byPath.get(from)?.text ?? '';
        const statements = text.match(/import[^;]*?from\s+'[^']+'/g) ?? [];
        return statements
          .filter((each) => each.endsWith(`/${base}'`))
          .every((each) => each.startsWith('import type'));
      });
    }
  });

  test.each(ALL)('$path keeps its types', (file) => {
    const code = codeOf(file);
    expect(code).not.toMatch(/:\s*any\b|\bas any\b|<any\b|any\[\]/);
    expect(file.text).not.toMatch(/@ts-(?:ignore|nocheck|expect-error)/);
    expect(code).not.toMatch(/[\w)\]]!(?:\.|;|,|\)|\[)/);
  });

  test('one idea each: none is longer than 400 lines', () => {
    const long = ALL.filter(({ text }) => text.split('\n').length > 400).map(({ path }) => path);
    expect(long).toEqual([]);
  });
});

describe('README', () => {
  const path = join(ROOT, 'README.md');

  test.each(['npm start', 'npm test'])('says `%s`', (command) => {
    expect(existsSync(path)).toBe(true);
    expect(readFileSync(path, 'utf8')).toContain(command);
  });
});
