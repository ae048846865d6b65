import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt, podOf, ROOT, readText, renderObjects } from './chart.ts';
import { copiesOf, parseDockerfile, type Stage, valuesOf } from './dockerfile.ts';

const { version, dependencies } = JSON.parse(readText('package.json')) as {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
};
const { stages } = parseDockerfile(readText('Dockerfile'));

function stage(name: string | undefined): Stage {
  const found = stages.find((each) => each.name === name);
  if (!found) throw new Error(`no stage ${String(name)}`);
  return found;
}

const final = stage(undefined);

describe('the Dockerfile', () => {
  test('has one base, of a release line that the program supports', () => {
    expect([...new Set(stages.map(({ base }) => base))]).toEqual(['node:20-bookworm-slim']);
    expect(readText('Dockerfile')).not.toContain('latest');
  });

  test('labels the image with the version of the program', () => {
    const [labels] = valuesOf(final, 'LABEL');
    expect(labels).toContain(`org.opencontainers.image.version="${version}"`);
  });

  test('copies what there is, and what is not kept out of the build', () => {
    const allowed = readText('.dockerignore')
      .split('\n')
      .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));
    const copied = stages
      .flatMap(copiesOf)
      .filter(({ from }) => from === undefined)
      .flatMap(({ sources }) => sources);
    expect([...new Set(copied)].sort()).toEqual(allowed.sort());
    expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    for (const { from } of stages.flatMap(copiesOf)) {
      if (from !== undefined) expect(stages.map(({ name }) => name)).toContain(from);
    }
  });

  test('leaves compilers and development packages behind', () => {
    expect(copiesOf(final).flatMap(({ sources }) => sources)).toEqual([
      'package.json',
      'LICENSE',
      'bin',
      '/src/node_modules',
      '/src/dist',
    ]);
    expect(valuesOf(stage('packages'), 'RUN')).toEqual(['npm install --no-save --omit=dev']);
  });

  test('installs iptables and keeps no package lists', () => {
    const [install] = valuesOf(final, 'RUN');
    expect(install).toMatch(
      /^apt-get update && apt-get install --yes --no-install-recommends iptables && rm -rf \/var\/lib\/apt\/lists\/\*$/,
    );
  });

  test('starts what the DaemonSet gives arguments to', () => {
    expect(valuesOf(final, 'ENTRYPOINT')).toEqual(['["node", "/opt/junction/bin/junction"]']);
    expect(valuesOf(final, 'WORKDIR')).toEqual(['/opt/junction']);
    const container = at(podOf(renderObjects()), 'containers', 0);
    expect(Object.keys(container as object)).not.toContain('command');
    expect(listAt(container, 'args')[0]).toBe('run');
  });
});

/** The Dockerfile's steps in a directory, with the packages of this checkout in place of a download. */
describe('the tree in the image', () => {
  let folder = '';
  const path = (...parts: readonly string[]): string => join(folder, ...parts);

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'junction-image-'));
    copy('build', path('build'));
    for (const name of ['esbuild', '@esbuild', 'preact']) {
      cpSync(join(ROOT, 'node_modules', name), path('build/node_modules', name), { recursive: true });
    }
    execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: path('build'), stdio: 'pipe' });

    copy(undefined, path('image'));
    cpSync(path('build/dist'), path('image/dist'), { recursive: true });
    for (const name of productionPackages()) {
      cpSync(join(ROOT, name), path('image', name), { recursive: true });
    }
    symlinkSync(path('image/bin/junction'), path('kube-proxy'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function copy(name: string | undefined, target: string): void {
    mkdirSync(target);
    for (const { from, sources, target: to } of copiesOf(stage(name))) {
      if (from !== undefined) continue;
      for (const source of sources) {
        cpSync(join(ROOT, source), join(target, to === './' ? basename(source) : to), { recursive: true });
      }
    }
  }

  /** What the lock file does not call a development package, as far as it is for this machine. */
  function productionPackages(): readonly string[] {
    const { packages } = JSON.parse(readText('package-lock.json')) as {
      readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
    };
    return Object.entries(packages).flatMap(([name, { dev }]) =>
      name !== '' && dev !== true && existsSync(join(ROOT, name)) ? [name] : [],
    );
  }

  function run(program: string, ...args: readonly string[]): string {
    return execFileSync(program, args, { encoding: 'utf8', cwd: '/', env: { PATH: process.env['PATH'] } });
  }

  test('is complete: the program runs in it', () => {
    const missing = Object.keys(dependencies).filter((name) => !existsSync(path('image/node_modules', name)));
    expect(missing).toEqual([]);
    expect(run(process.execPath, path('image/bin/junction'), '--version').trim()).toBe(
      `Junction v${version}`,
    );
    const plan = run(
      process.execPath,
      path('image/bin/junction'),
      'plan',
      '--hostname-override=node1',
      `--manifests=${join(ROOT, 'examples')}`,
    );
    expect(plan).toContain(':KUBE-SERVICES - [0:0]');
    expect(existsSync(path('image/dist/netlink-worker.js'))).toBe(true);
    expect(existsSync(path('image/dist/page/index.html.br'))).toBe(true);
  });

  test('starts by the name of kube-proxy as well', () => {
    expect(run(path('kube-proxy'), '--version').trim()).toBe(`Junction v${version}`);
  });
});
