/** What a start changes, and what it must not: unusable input, a second Junction, a signal. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { FLAGS } from './daemon.ts';
import { Program, runProgram } from './support/program.ts';
import { manifests } from './cluster.ts';

const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', pods: 'ac' }]);

describe('a start', () => {
  const lab = useLab();
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-e2e-'));
    await writeFile(join(directory, 'cluster.yaml'), WORLD);
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function file(name: string, text: string): Promise<string> {
    const path = join(directory, name);
    await writeFile(path, text);
    return path;
  }

  const world = (): readonly string[] => ['run', `--manifests=${join(directory, 'cluster.yaml')}`, ...FLAGS];

  /** Every kernel setting of the namespace but counts, every rule, and which legacy tables there are. */
  function kernel(): Promise<string> {
    const script = `cd /proc/sys/net && grep -rs . . | grep -v nf_conntrack_count | sort
cat /proc/net/ip_tables_names /proc/net/ip6_tables_names 2>/dev/null
nft -s list ruleset`;
    return lab().host('node1').run(['sh', '-c', script]);
  }

  function kubeconfig(cluster: string, user: string): string {
    return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {${cluster}}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
  }
  const SERVER = 'server: "https://127.0.0.1:6443"';
  const NO_FILE = '/nonexistent/file.pem';

  const BAD: readonly (readonly [what: string, flags: () => Promise<readonly string[]>, says: RegExp])[] = [
    ['no API server', async () => [], /no API server is given/],
    ['a kubeconfig that is not there', async () => [`--kubeconfig=${NO_FILE}`], /kubeconfig/],
    [
      'a kubeconfig that is not YAML',
      async () => [`--kubeconfig=${await file('k0', '{ a: [')}`],
      /kubeconfig/,
    ],
    [
      'an address that is none',
      async () => [`--kubeconfig=${await file('k1', kubeconfig('server: "ftp://x"', 'token: t'))}`],
      /is not the address of an API server/,
    ],
    ['a --master that is none', async () => ['--master=http://a b/'], /--master: .* is not the address/],
    [
      'a certificate authority that is not there',
      async () => [
        `--kubeconfig=${await file('k2', kubeconfig(`${SERVER}, certificate-authority: ${NO_FILE}`, 'token: t'))}`,
      ],
      /file\.pem/,
    ],
    [
      'a certificate authority that is not there, with a credential plugin',
      async () => [
        `--kubeconfig=${await file('k3', kubeconfig(`${SERVER}, certificate-authority: ${NO_FILE}`, 'exec: {apiVersion: client.authentication.k8s.io/v1, command: "true", interactiveMode: Never}'))}`,
      ],
      /file\.pem/,
    ],
    [
      'a certificate authority that is no certificate',
      async () => [
        `--kubeconfig=${await file('k4', kubeconfig(`${SERVER}, certificate-authority-data: AAAA`, 'token: t'))}`,
      ],
      /certificate/,
    ],
    [
      'a client certificate without a key',
      async () => [`--kubeconfig=${await file('k5', kubeconfig(SERVER, 'client-certificate-data: AAAA'))}`],
      /key|certificate/,
    ],
    [
      'a token file that is not there',
      async () => [`--kubeconfig=${await file('k6', kubeconfig(SERVER, `tokenFile: ${NO_FILE}`))}`],
      /file\.pem/,
    ],
    ['manifests that are not there', async () => [`--manifests=${NO_FILE}`], /does not exist/],
    ['a configuration that is not YAML', async () => [`--config=${await file('c0', 'a: [')}`], /c0/],
    [
      'a configuration with a bad field',
      async () => [
        `--config=${await file('c1', 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptabels\n')}`,
      ],
      /mode/i,
    ],
    ['a flag that is none', async () => ['--no-such-flag'], /no-such-flag/],
  ];

  test('with what cannot be used ends, and has changed nothing in the kernel', async () => {
    const before = await kernel();
    for (const [index, [what, flags, says]] of BAD.entries()) {
      const mode = index % 2 === 0 ? 'iptables' : 'nftables';
      const args = ['run', '--hostname-override=node1', `--proxy-mode=${mode}`, ...(await flags())];
      const { exitCode, stderr, timedOut } = await runProgram(lab().host('node1'), ...args);
      expect(timedOut, `${what} said: ${stderr}`).toBe(false);
      expect(exitCode, `${what} said: ${stderr}`).toBeGreaterThan(0);
      expect(stderr).toMatch(says);
      expect(stderr).not.toMatch(/^ {4}at /m);
    }
    expect(await kernel()).toBe(before);
  });

  test('beside another Junction waits, names it, and takes over when it is killed', async () => {
    const node = lab().host('node1');
    const first = Program.start(node, world());
    await first.serves();
    const second = Program.start(node, world());
    await second.says(/serves this network namespace; waiting.*pid \d+, mode iptables, node node1, since/);
    await first.end('SIGKILL');
    await second.serves();
    const forced = await runProgram(node, 'cleanup', '--force');
    expect(forced.exitCode, `it said: ${forced.stderr}`).toBe(0);
    expect(forced.stderr).toMatch(/a Junction runs here, and writes its rules again: pid \d+/);
    expect((await runProgram(node, 'cleanup', '--dry-run')).exitCode).toBe(0);
    const cleanup = Program.start(node, ['cleanup']);
    await cleanup.says(/waiting for a Junction to end: pid \d+, mode iptables/);
    expect(await second.end('SIGTERM')).toBe(0);
    expect(await cleanup.ended()).toBe(0);
  });
});
