import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { script } from './scripts.ts';
import { treeOf } from './tree.ts';
import { at, listAt, podOf, ROOT, readText, renderObjects } from '../deploy/chart.ts';
import { copiesOf, parseDockerfile, type Stage, valuesOf } from './dockerfile.ts';

const { version } = JSON.parse(readText('package.json')) as { readonly version: string };
const { stages } = parseDockerfile(readText('Dockerfile'));

function stage(name: string | undefined): Stage {
  const found = stages.find((each) => each.name === name);
  if (!found) throw new Error(`no stage ${String(name)}`);
  return found;
}

const final = stage(undefined);

describe('the Dockerfile', () => {
  test('has one base, of a release line that the program supports', () => {
    expect([...new Set(stages.map(({ base }) => base))]).toEqual(['node:24-bookworm-slim']);
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

  test('leaves everything behind but the program', () => {
    expect(copiesOf(final)).toEqual([{ from: 'build', sources: ['/out'], target: './' }]);
  });

  test('checks what it installed before it runs it', () => {
    expect(valuesOf(stage('build'), 'RUN')).toEqual([
      'npm install --no-save',
      'node scripts/support/lockCheck.mjs',
      'node scripts/ship/program.mjs /out',
    ]);
  });

  test('installs iptables and keeps no package lists', () => {
    const [install] = valuesOf(final, 'RUN');
    expect(install).toMatch(
      /^apt-get update && apt-get install --yes --no-install-recommends iptables && rm -rf \/var\/lib\/apt\/lists\/\*$/,
    );
  });

  test('starts what the DaemonSet gives arguments to', () => {
    expect(valuesOf(final, 'ENTRYPOINT')).toEqual(['["node", "/opt/junction/junction.js"]']);
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

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'junction-image-'));
    vi.stubEnv('JUNCTION_COMMIT', '0123456789abcdef');
    vi.stubEnv('SOURCE_DATE_EPOCH', '1700000000');
    copyCheckout();
    mkdirSync(path('build/node_modules'));
    for (const name of ['esbuild', '@esbuild', 'preact', '.cache'])
      symlinkSync(join(ROOT, 'node_modules', name), path('build/node_modules', name));
    execFileSync(process.execPath, ['scripts/ship/program.mjs', path('image')], {
      cwd: path('build'),
      stdio: 'pipe',
    });
    const { assembleProgram } = await script('ship/program');
    await assembleProgram(path('assembled'));
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });

  function copyCheckout(): void {
    for (const { sources, target } of copiesOf(stage('build'))) {
      for (const source of sources) {
        const name = target === './' ? basename(source) : target;
        cpSync(join(ROOT, source), path('build', name), { recursive: true });
      }
    }
  }

  function run(program: string, ...args: readonly string[]): string {
    return execFileSync(program, args, { encoding: 'utf8', cwd: '/', env: { PATH: process.env['PATH'] } });
  }

  test('is the program that the other artefacts have, to the byte', () => {
    expect(treeOf(path('image'))).toEqual(treeOf(path('assembled')));
  });

  test('starts by its names, that of kube-proxy included', () => {
    mkdirSync(path('names'));
    const links = (valuesOf(final, 'RUN')[1] ?? '')
      .replaceAll('/usr/local/bin', path('names'))
      .replaceAll('/opt/junction', path('image'));
    execFileSync('sh', ['-c', links], { cwd: path('image') });
    for (const name of ['junction', 'kube-proxy'])
      expect(run(path('names', name), '--version').trim()).toBe(`Junction v${version}`);
    expect(run(path('names/junction'), 'version')).toContain('0123456789abcdef');
    expect(run(path('names/kubectl-junction'), '--help')).toContain('kubectl junction');
    const manifests = `--manifests=${join(ROOT, 'examples')}`;
    expect(run(path('names/junction'), 'plan', '--hostname-override=node1', manifests)).toContain(
      ':KUBE-SERVICES - [0:0]',
    );
  });
});
