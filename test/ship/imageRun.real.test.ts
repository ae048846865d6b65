import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type UnpackedImage, unpackImage } from '../../lab/container/ociImage.ts';
import type { Data } from '../deploy/chart.ts';
import { answerers } from '../e2e/support/traffic.ts';
import { requireLab, useLab } from '../lab/requireLab.ts';
import { ROOT } from '../support/checkout.ts';
import { BUILD_LIMIT_MS, builtImage, pathsOf } from './builtImage.ts';
import { ImagePod } from './imagePod.ts';
import { requireContainers, whyNoContainers } from './requireContainers.ts';

const lab = useLab();
let folder = '';
let image: UnpackedImage;
let unpacked: readonly string[] = [];
let pod: ImagePod;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-image-run-'));
  if (whyNoContainers() !== undefined) return;
  image = unpackImage(`${builtImage().base}.oci.tar`, folder);
  unpacked = pathsOf(image.rootfs);
}, BUILD_LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach((context) => {
  requireLab(context);
  requireContainers(context);
});

/** The chart's own means to give Junction objects without an API server: a flag more. */
function makePod(mode: string, extra: Data = {}): ImagePod {
  const mounts = [{ source: join(ROOT, 'examples'), destination: '/manifests', readOnly: true }];
  const values = {
    config: { mode, clusterCIDR: '10.244.0.0/16,fd00:244::/32', nodePortAddresses: ['0.0.0.0/0', '::/0'] },
    extraArgs: ['--manifests=/manifests', '--v=1'],
    ...extra,
  };
  pod = new ImagePod({ host: lab().host('node1'), image, folder, values, mounts });
  return pod;
}

/** What is left by Junction is removed, so that the next test starts on a clean node. */
afterEach(async () => {
  await pod.dispose();
  await lab()
    .host('node1')
    .run([join(ROOT, 'bin/junction'), 'cleanup']);
});

const STATUS = `const text = require('fs').readFileSync('/proc/1/status', 'utf8');
  const field = (name) => text.match(new RegExp('^' + name + ':\\\\s+(.*)$', 'm'))[1];
  console.log(['CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp', 'Uid'].map(field).join(' | '));`;
const PLACES = [
  '/x',
  '/opt/junction/x',
  '/etc/x',
  '/lib/modules/x',
  '/var/lib/kube-proxy/x',
  '/proc/sys/kernel/hostname',
];
const WRITE = `for (const path of ${JSON.stringify(PLACES)})
  try { require('fs').writeFileSync(path, 'x'); } catch (error) { console.log(path, error.code); }`;
const API = '10.96.0.10';
const API_PODS = 'pod-a pod-c pod-d';

describe.each([
  { mode: 'iptables', variant: 'nft', capabilities: '0000000000001000' },
  { mode: 'nftables', variant: 'auto', capabilities: '0000000000001000' },
  // The last: where the legacy variant has tables, cleanup lists them, which takes NET_RAW.
  { mode: 'iptables', variant: 'legacy', capabilities: '0000000000003000' },
])('the DaemonSet’s pod in $mode mode, --iptables-variant=$variant', ({ mode, variant, capabilities }) => {
  test('serves; commands work in it; nothing is written but in its mounts', async () => {
    makePod(mode, { junction: { iptablesVariant: variant } });
    const [podB, client, node1] = [lab().host('pod-b'), lab().host('client'), lab().host('node1')];
    await node1.sysctl({ 'net/ipv4/conf/all/route_localnet': '0' });
    expect(await pod.init()).toMatchObject([{ exitCode: 0 }]);
    await pod.start();

    expect(await answerers(podB, API)).toBe(API_PODS);
    expect(await answerers(client, '192.0.2.1', 30080)).toBe('pod-b pod-d');
    expect(await answerers(podB, 'fd00:96::60')).toBe('pod-b pod-c');
    const routesLocalnet = await node1.run(['cat', '/proc/sys/net/ipv4/conf/all/route_localnet']);
    expect(routesLocalnet.trim()).toBe(mode === 'iptables' ? '1' : '0');
    if (mode === 'iptables') expect(await answerers(node1, '127.0.0.1', 30080)).toBe('pod-b pod-d');

    await expectConfinement(capabilities);
    await expectCommands(mode);

    expect(await pod.stop()).toBe(0);
    expect(await answerers(podB, API)).toBe(API_PODS);
    expect(await pod.run(pod.container, { args: ['cleanup'] })).toMatchObject({ exitCode: 0 });
    expect(await answerers(podB, API, 80, 500)).not.toContain('pod-');
    const added = pathsOf(image.rootfs).filter((path) => !unpacked.includes(path));
    expect(added.filter((path) => !MOUNT_POINTS.has(path))).toEqual([]);
    expect(readdirSync(join(folder, 'volumes')).sort()).toEqual(['config', 'tmp']);
    expect(readdirSync(join(folder, 'node/run')).sort()).toEqual(['junction', 'xtables.lock']);
  });
});

async function expectConfinement(capabilities: string): Promise<void> {
  const node = ['/opt/junction/bin/node', '-e'];
  const state = await pod.exec(...node, STATUS);
  expect(state.stdout.trim()).toBe(`${capabilities} | ${capabilities} | 1 | 2 | 0\t0\t0\t0`);
  const writes = await pod.exec(...node, WRITE);
  expect(writes.stdout.trim().split('\n')).toEqual(PLACES.map((path) => `${path} EROFS`));
  const shell = await pod.exec('/bin/sh', '-c', 'true');
  expect(shell).toMatchObject({ stderr: expect.stringContaining('no such file or directory') });
}

async function expectCommands(mode: string): Promise<void> {
  const run = async (...args: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await pod.exec('/usr/local/bin/junction', ...args);
    expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: '' });
    return stdout;
  };
  expect(await run('check', '--config=/var/lib/kube-proxy/config.conf')).toContain(
    `${mode} mode can run here`,
  );
  expect(await run('status')).toMatch(new RegExp(`^Junction v\\S+ on node1, ${mode} mode.*: ok`));
  expect(await run('explain', '--from', 'outside', '--to', '192.0.2.1:30080')).toContain('10.244.');
  expect(await run('services')).toContain('shop/api');
  expect(await run('cleanup', '--dry-run', '--force')).toMatch(/^Would remove|tables? /);
  const doctor = await pod.exec('/usr/local/bin/junction', 'doctor');
  // The one thing that is wrong is an example of that.
  expect(doctor.stdout).toMatch(/✗ the one endpoint of shop\/idle is not ready\n[^✗]*: 1 error\.\n$/);
}

/** What runc makes in the root file system, so that it can mount there. */
const MOUNT_POINTS: ReadonlySet<string> = new Set([
  'dev/pts',
  'dev/shm',
  'etc/hosts',
  'etc/resolv.conf',
  'host',
  'host/net',
  'manifests',
  'run/junction',
  'run/xtables.lock',
]);

test('starts by the command of kube-proxy’s own DaemonSet', async () => {
  makePod('iptables');
  const command = ['/usr/local/bin/kube-proxy'];
  const args = [
    '--config=/var/lib/kube-proxy/config.conf',
    '--hostname-override=$(NODE_NAME)',
    '--manifests=/manifests',
  ];
  await pod.start({ command, args });
  expect(await answerers(lab().host('pod-b'), API)).toBe(API_PODS);
});
