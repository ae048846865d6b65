/** ARCHITECTURE.md is a map: every name and path on it is there, and in the file that it says. So are those of the pages beside it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { filesUnder, ROOT, type SourceFile } from './sources.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGE = read('ARCHITECTURE.md');
const README_LINKS = [...read('README.md').matchAll(/\]\(([\w/.-]+)[)#]/g)].map(([, page = '']) => page);
const TEXT = `${PAGE}\n${read('CONTRIBUTING.md')}`
  .replaceAll(/```[\s\S]*?```/g, '')
  .replaceAll(/<!--.*?-->/g, '');
const FILES = ['src', 'lab', 'test', 'bench', 'scripts', 'examples', 'docs'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
);
const SOURCES = [...filesUnder('src'), ...filesUnder('lab')];
const QUOTED = [...new Set([...TEXT.matchAll(/`([^`\n]+)`/g)].map(([, quoted = '']) => quoted))];

/** `decide`, `Planner.update`, `decide(plan, packet)` */
const NAME = /^([A-Za-z][A-Za-z0-9]*)(?:\.([a-z]\w*))?(?:\(.*\))?$/;
/** Words of others: a mode, a layout, a pool, a command, a variable, a type of TypeScript. */
const NOT_OURS =
  /^(?:CI|any|iptables|ipvs|nftables|current|classic|cluster|local|pod|node|outside|forward|run|plan|check|cleanup|explain|diff|doctor|bundle|watch|api|npm)$/;

const isDeclared = (name: string, sources: readonly SourceFile[] = SOURCES): boolean => {
  const declaration = new RegExp(`\\b(?:class|interface|type|function\\*?|const|enum) ${name}\\b`);
  const method = new RegExp(`^ {2}(?:protected |override |abstract |async )*\\*?#?${name}(?:<.*>)?\\(`, 'm');
  return sources.some(({ text }) => declaration.test(text) || method.test(text));
};

const hasMember = (owner: string, member: string): boolean => {
  const declaration = new RegExp(`\\b(?:class|interface) ${owner}\\b`);
  const line = new RegExp(
    `^ {2}(?:protected |override |abstract |readonly |async |get |static )*\\*?${member}(?:<.*>)?\\??[(:]`,
    'm',
  );
  return SOURCES.some(({ text }) => declaration.test(text) && line.test(text));
};

const names = QUOTED.flatMap((quoted) => {
  const [, owner = '', member] = NAME.exec(quoted) ?? [];
  return owner === '' || member === 'ts' || NOT_OURS.test(owner) ? [] : [{ quoted, owner, member }];
});

describe('names', () => {
  test('there are some', () => expect(names.length).toBeGreaterThan(40));

  test.each(names)('$quoted', ({ owner, member }) => {
    expect(member === undefined ? isDeclared(owner) : hasMember(owner, member)).toBe(true);
  });
});

describe('paths', () => {
  const paths = QUOTED.filter((quoted) => /^[\w*.-]+\/[\w/*.-]*$|\.(?:ts|md|yaml)$/.test(quoted));

  test.each(paths)('%s', (path) => {
    const isThere = ['', 'src', 'test'].some((folder) => existsSync(join(ROOT, folder, path)));
    const isFolder = path.endsWith('/') && FILES.some((file) => file.includes(`/${path}`));
    const ending = path.replace('*', '');
    const isFile = FILES.some(
      (file) =>
        basename(file) === path || file.endsWith(`/${path}`) || (path !== ending && file.endsWith(ending)),
    );
    expect(isThere || isFolder || isFile).toBe(true);
  });
});

describe('docs/seeds.md', () => {
  const seeds = [...read('docs/seeds.md').matchAll(/`([\w/.-]+\.ts|[\w-]+\/(?:[\w-]+\/)*)`/g)].map(
    ([, path = '']) => path,
  );

  test('names some', () => expect(seeds.length).toBeGreaterThan(80));

  test.each([...new Set(seeds)])('%s', (path) => {
    const isBelow = ['src', 'test', ''].some((folder) => existsSync(join(ROOT, folder, path)));
    expect(isBelow || FILES.some((file) => file.endsWith(`/${path}`))).toBe(true);
  });

  test('functions and members that it names are there', () => {
    const named = [...read('docs/seeds.md').matchAll(/`([a-z]+[A-Z]\w+)`/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(
      named.filter((name) => !SOURCES.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text))),
    ).toEqual([]);
  });
});

/** "`externalRoutes` in `src/plan/servicePortPlan.ts`" */
const PLACES = [...TEXT.matchAll(/`(\w+)(?:\.(\w+))?` in `(src\/[\w/.-]+)`/g)].map(
  ([, owner = '', member, path = '']) => ({ name: member ?? owner, path }),
);

describe('where it is decided', () => {
  test('there are some', () => expect(PLACES.length).toBeGreaterThan(8));

  test.each(PLACES)('$name in $path', ({ name, path }) => {
    const sources = SOURCES.filter((source) => source.path.startsWith(path));
    expect(isDeclared(name, sources)).toBe(true);
  });
});

describe('the hops in CONTRIBUTING.md', () => {
  const [, table = ''] = read('CONTRIBUTING.md').split('| question | hop 1 | hop 2 | hop 3 |\n');
  const rows = table.split('\n\n')[0]?.split('\n').slice(1) ?? [];
  const hops = rows.map((row) => row.slice(2, -2).split(' | '));
  const quotedIn = (cell = ''): readonly string[] =>
    [...cell.matchAll(/"([^"]+)"/g)].map(([, said = '']) => said);
  const flat = (path: string): string => read(path).replaceAll(/\s+/g, ' ');

  test('five questions', () => expect(hops.map((cells) => cells.length)).toEqual([4, 4, 4, 4, 4]));

  test.each(hops)('%s', (_question, first = '', second = '', third = '') => {
    expect(quotedIn(first).every((said) => flat('README.md').includes(said))).toBe(true);
    const [, page = 'ARCHITECTURE.md'] = /\]\(([\w/.-]+\.md)/.exec(second) ?? [];
    expect(README_LINKS).toContain(page);
    expect(quotedIn(second)).not.toEqual([]);
    expect(quotedIn(second).every((said) => flat(page).includes(said))).toBe(true);
    expect(third).toMatch(/`src\//);
  });
});

describe("one event's way in", () => {
  const [, after = ''] = PAGE.split("\n## One event's way in\n");
  const [way = ''] = after.split('\n## ');
  const [shared = '', ...modes] = way.split('\n### ').slice(1);
  const rowsOf = (text: string): readonly { readonly path: string; readonly what: string }[] =>
    [...text.matchAll(/^\| `(src\/[\w/.-]+)` \| (.*) \|$/gm)].map(([, path = '', what = '']) => ({
      path,
      what,
    }));
  const filesOf = (text: string): readonly string[] => rowsOf(text).map(({ path }) => path);

  test('for every mode', () => {
    expect(modes.map((text) => text.split('\n')[0])).toEqual([
      'In iptables mode',
      'In IPVS mode',
      'In nftables mode',
    ]);
  });

  test.each(modes.map((text) => [text.split('\n')[0] ?? '', text]))('%s: at most 30 files', (_, text) => {
    const files = [...filesOf(shared), ...filesOf(text)];
    expect(files.length).toBeGreaterThan(15);
    expect(files.length).toBeLessThanOrEqual(30);
    expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(new Set(files).size).toBe(files.length);
  });

  test.each(rowsOf(way))('$path: $what', ({ path, what }) => {
    const named = [...what.matchAll(/`(\w+)(?:\.\w+)?`/g)].map(([, name = '']) => name);
    const sources = SOURCES.filter((source) => source.path === path);
    expect(named.some((name) => isDeclared(name, sources))).toBe(true);
  });
});

describe("one packet's way through", () => {
  const drawings = (path: string): string =>
    [...read(path).matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, drawing = '']) => drawing).join('\n');

  async function planned(...flags: readonly string[]): Promise<string> {
    let out = '';
    const write = (text: string): void => void (out += text);
    const cluster = [
      `--manifests=${join(ROOT, 'examples')}`,
      '--hostname-override=node1',
      '--cluster-cidr=10.244.0.0/16',
    ];
    await main(['plan', ...cluster, '--family=ipv4', ...flags], {
      out: write,
      painted: write,
      err: () => {},
    });
    return out;
  }

  test.each(['ARCHITECTURE.md', 'docs/iptables.md', 'docs/ipvs.md'])(
    'chains in drawings of %s',
    async (path) => {
      const layouts = ['current', 'classic'].map((layout) => planned(`--iptables-layout=${layout}`));
      const written = (await Promise.all([...layouts, planned('--proxy-mode=ipvs')])).join('\n');
      const chains = new Set([...drawings(path).matchAll(/\bKUBE(?:-[A-Z]+)+/g)].map(([chain]) => chain));
      expect(chains.size).toBeGreaterThan(5);
      expect([...chains].filter((chain) => !written.includes(chain))).toEqual([]);
    },
  );

  test.each(['ARCHITECTURE.md', 'docs/nftables.md'])('sets and maps in drawings of %s', async (path) => {
    // Neither the backstop nor what only an API server has is in a plan.
    const names = filesUnder('src/modes/nftables/rules').map(({ text }) =>
      text.replaceAll(/'([a-z-]+)'/g, 'set $1'),
    );
    const written = [await planned('--proxy-mode=nftables'), ...names].join('\n');
    const sets = new Set(
      [...drawings(path).matchAll(/@([a-z][a-z-]*[a-z])(?!-?\*)\b/g)].map(([, name = '']) => name),
    );
    expect(sets.size).toBeGreaterThan(2);
    expect([...sets].filter((name) => !new RegExp(`(?:set|map) ${name}`).test(written))).toEqual([]);
  });

  test("chains in the drawing of an nftables packet's way", async () => {
    const [, section = ''] = PAGE.split('\n### nftables\n');
    const [, drawing = ''] = /^```text\n([\s\S]*?)^```$/m.exec(section) ?? [];
    const chains = [...drawing.matchAll(/──► ([a-z-]+)|^ {3}([a-z]+)/gm)].flatMap(
      ([, to, from]) => to ?? from ?? [],
    );
    const written = await planned('--proxy-mode=nftables');
    expect(chains.length).toBeGreaterThan(4);
    expect(chains.filter((name) => !written.includes(`chain ${name} {`))).toEqual([]);
  });
});
