/** The Debian package and the archive on a Debian 12 with a real systemd; every command of docs/recipes/systemd.md in its order. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../e2e/support/eventually.ts';
import { readText } from '../deploy/chart.ts';
import { RECIPES, recipeBlocks } from '../deploy/recipes.ts';
import { VERSION } from '../../src/version.ts';
import { BUILD_LIMIT_MS } from './builtImage.ts';
import { API_PORT, Cluster } from './systemd/cluster.ts';
import { debianRoot } from './systemd/debianRoot.ts';
import { capture, SystemdNode, whyNoSystemd } from './systemd/node.ts';
import { buildBundle } from './systemd/bundle.ts';

const NEXT = '0.2.1';
const PAGE = readText(RECIPES, 'systemd.md');
const BLOCKS = recipeBlocks('systemd.md').map((block) => {
  const [title = ''] =
    PAGE.split('\n').slice(0, block.line).join('\n').split(/^## /m).at(-1)?.split('\n') ?? [];
  return { ...block, title };
});
const run = new Set<string>();

/** The commands below a heading of the page, block by block. */
function commands(title: string): readonly string[] {
  const found = BLOCKS.filter((block) => block.title === title && block.mark === 'tests');
  if (found.length === 0) throw new Error(`no commands below ${title}`);
  run.add(title);
  return found.map(({ text }) => text);
}

/** What the page shows below a heading. */
function shown(title: string): string {
  return BLOCKS.find((block) => block.title === title && block.language === '')?.text ?? 'nothing';
}

/** The same package with another version: what an upgrade is to dpkg. */
function nextVersion(debian: string, folder: string): string {
  const root = join(folder, 'next');
  execFileSync('dpkg-deb', ['--raw-extract', debian, root]);
  for (const name of ['DEBIAN/control', 'usr/lib/junction/package.json', ...programFiles(root)]) {
    const text = readFileSync(join(root, name), 'utf8');
    writeFileSync(join(root, name), text.replaceAll(VERSION, NEXT));
  }
  const file = join(folder, `junction_${NEXT}_amd64.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', root, file]);
  return file;
}

function programFiles(root: string): readonly string[] {
  const found = execFileSync('grep', ['-rlF', '--include=*.js', `"${VERSION}"`, 'usr/lib/junction'], {
    cwd: root,
  });
  return found.toString().trim().split('\n');
}

const reason = whyNoSystemd();
if (reason !== undefined) console.warn(`The tests of the systemd unit are skipped. ${reason}`);

describe('on a Debian node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bundle-node-'));
  let node: SystemdNode;
  let cluster: Cluster;

  beforeAll(async () => {
    if (reason !== undefined) return;
    const [root, { archive, debian }] = [await debianRoot(), await buildBundle(folder)];
    node = await SystemdNode.boot(root);
    for (const file of [archive, debian, nextVersion(debian, folder)])
      copyFileSync(file, join(node.path('/root'), basename(file)));
    writeFileSync(node.path('/usr/local/bin/sudo'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
    installKubeProxy();
    // Here the package installs its manual page.
    await node.shell('rm /etc/dpkg/dpkg.cfg.d/99mmdebstrap');
    await node.shell('systemctl daemon-reload; systemctl enable --now kube-proxy');
    cluster = await Cluster.around(node, folder);
  }, BUILD_LIMIT_MS);
  afterAll(async () => {
    await cluster?.close();
    await node?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach((context) => {
    if (reason === undefined) return;
    if (process.env['CI'] === 'true') throw new Error(reason);
    context.skip(reason);
  });

  /** As a node has it that was set up by hand. */
  function installKubeProxy(): void {
    const unit = '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n';
    writeFileSync(node.path('/etc/systemd/system/kube-proxy.service'), unit);
    mkdirSync(node.path('/var/lib/kube-proxy'));
    const server = `http://127.0.0.1:${String(API_PORT)}`;
    writeFileSync(
      node.path('/var/lib/kube-proxy/kubeconfig'),
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster: { server } }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
        users: [{ name: 'u', user: {} }],
        'current-context': 'c',
      }),
    );
  }

  const state = async (unit = 'junction'): Promise<string> =>
    (await node.run('systemctl', 'is-active', unit)).output.trim();
  const property = async (name: string): Promise<string> =>
    (await node.run('systemctl', 'show', '--value', '--property', name, 'junction')).output.trim();
  const journal = async (): Promise<string> =>
    (await node.run('journalctl', '--no-pager', '--output=cat', '--unit', 'junction')).output;

  /** Answers with what they print. */
  async function page(title: string): Promise<string> {
    let output = '';
    for (const block of commands(title)) output += await node.shell(block);
    return output;
  }

  async function hasSynced(): Promise<void> {
    await eventually('the first sync', async () => (await node.run('junction', 'status')).code === 0);
  }

  async function served(): Promise<void> {
    await eventually('an answer of the pod', () => cluster.isServed());
  }

  test('the package installs, and leaves kube-proxy alone', async () => {
    const output = await page('1. Install');
    expect(output).toContain(shown('1. Install'));
    expect(await state()).toBe('inactive');
    expect(await state('kube-proxy')).toBe('active');
    expect(await node.shell('junction --version')).toContain(`Junction v${VERSION}`);
    expect((await node.run('dpkg', '--verify', 'junction')).output).toBe('');
    expect((await node.run('systemd-analyze', 'verify', '--man=no', 'junction.service')).output).toBe('');
  });

  test('what is missing is named before anything is started', async () => {
    await node.shell('mkdir away; mv /usr/sbin/xtables-*-multi away');
    const { code, output } = await node.run('systemctl', 'start', 'junction');
    expect(code).not.toBe(0);
    expect(output).toContain('control process exited with error code');
    expect(await journal()).toMatch(/program iptables.*missing[^]*iptables mode cannot run here/);
    await node.shell('systemctl stop junction; mv away/* /usr/sbin');
  });

  test('it starts in the place of kube-proxy, and serves', async () => {
    expect(await page('2. Configure')).toContain('iptables mode can run here.');
    await page('3. Start');
    await hasSynced();
    const output = await page('Look');
    expect(output).toContain(shown('Look'));
    expect(output).toMatch(/Active: active \(running\)/);
    expect(output).toMatch(/^Junction v0\.2\.0 on node1, iptables mode.*: ok$/m);
    await served();
    expect(await state('kube-proxy')).toBe('inactive');
    expect(await node.shell('iptables-save -t nat')).toContain('KUBE-SERVICES');
    expect(await node.shell('cat /proc/sys/net/ipv4/conf/all/route_localnet')).toBe('1\n');
  });

  test('it has the two capabilities, and writes nowhere else', async () => {
    const pid = await property('MainPID');
    expect(await node.shell(`grep ^Cap /proc/${pid}/status`)).toBe(
      ['Inh:\t', 'Prm:\t', 'Eff:\t', 'Bnd:\t', 'Amb:\t']
        .map((name) => `Cap${name}${/Inh|Amb/.test(name) ? '0000000000000000' : '0000000000003000'}\n`)
        .join(''),
    );
    const mounts = await node.shell(`cat /proc/${pid}/mounts`);
    const writable = mounts.split('\n').flatMap((line) => {
      const [, path = '', , options = ''] = line.split(' ');
      return options.startsWith('rw') ? [path] : [];
    });
    expect(writable.filter((path) => !/^\/(?:dev|tmp|var\/tmp)\b/.test(path)).sort()).toEqual([
      '/proc',
      '/proc/sys/net',
      '/run/junction',
      '/run/xtables.lock',
    ]);
    const rating = await node.shell('systemd-analyze security --no-pager junction');
    expect(rating).toMatch(/Overall exposure level for junction\.service: 2\.3/);
    expect(PAGE).toContain('rates it 2.3');
    await page('What the unit allows');
    expect(await property('CapabilityBoundingSet')).toBe('cap_net_bind_service cap_net_admin cap_net_raw');
    await node.shell('rm -r /etc/systemd/system/junction.service.d; systemctl daemon-reload');
  });

  test('killed, it starts again; an upgrade restarts it; services and the configuration stay', async () => {
    const failures = await cluster.whileAsking(async () => {
      await node.shell('systemctl kill --signal=KILL junction');
      await eventually('a restart', async () => Number(await property('NRestarts')) > 0);
      await hasSynced();
      await page('Upgrade');
      await hasSynced();
    });
    expect(failures).toBe('');
    expect(await node.shell('junction status')).toContain(`Junction v${NEXT} on node1`);
    expect(await node.shell('cat /etc/junction/config.conf')).toContain('clusterCIDR: 10.244.0.0/16');
  });

  test.each([
    ['nftables', 'auto', ['nft', 'list', 'ruleset'], 'jump services'],
    ['iptables', 'legacy', ['iptables-legacy-save', '-t', 'nat'], '-j KUBE-SERVICES'],
  ])('the unit allows what %s mode needs, with iptables: %s', async (mode, variant, look, rule) => {
    await node.shell(
      `sed -i '/^junction:/,$d; s/^mode: .*/mode: ${mode}/' /etc/junction/config.conf;` +
        `printf 'junction:\\n  iptablesVariant: ${variant}\\n' >> /etc/junction/config.conf; systemctl restart junction`,
    );
    await hasSynced();
    expect(await node.shell('junction status')).toMatch(new RegExp(`, ${mode} mode.*: ok$`, 'm'));
    expect((await capture([...node.network(), ...look])).output).toContain(rule);
    await served();
  });

  test('one command brings kube-proxy back', async () => {
    await page('Back');
    expect([await state(), await state('kube-proxy')]).toEqual(['inactive', 'active']);
    expect(await node.shell('iptables-legacy-save; iptables-save')).not.toMatch(/KUBE-SERVICES|KUBE-SVC/);
    expect(await cluster.isServed()).toBe(false);
  });

  test('removed, its rules stay; purged, nothing else does', async () => {
    await node.shell('systemctl enable --now junction');
    await served();
    expect(await node.shell('dpkg --remove junction')).toContain('Its rules stay in the kernel');
    await served();
    expect(await node.shell('ls /etc/junction')).toContain('config.conf');
    await node.shell(`dpkg --install junction_${VERSION}_amd64.deb`);
    expect(await state()).toBe('inactive');
    expect(await node.run('systemctl', 'is-enabled', 'junction')).toMatchObject({ output: 'disabled\n' });
    await node.shell('junction cleanup');
    await page('Remove');
    expect(await cluster.isServed()).toBe(false);
    const left =
      'find / -xdev -name "*junction*" -not -path "/proc/*" -not -path "/root/*" -not -path "/var/log/*"';
    expect(await node.shell(`ls /etc/junction; ${left}`)).toBe('kubeconfig\n/etc/junction\n');
  });

  test('the archive serves as well, from /opt', async () => {
    const [install = '', remove = ''] = commands('Without Debian: the archive');
    await node.shell(install);
    await page('2. Configure');
    await page('3. Start');
    await served();
    expect(await property('ExecStart')).toContain('/opt/junction/bin/junction');
    await node.shell(remove);
    expect(await state()).toBe('inactive');
    expect(await cluster.isServed()).toBe(false);
  });

  test('no command of the page was left out', () => {
    const marked = BLOCKS.filter(({ mark }) => mark === 'tests').map(({ title }) => title);
    expect([...run].sort()).toEqual([...new Set(marked)].sort());
  });
});
