/** Runs of the program that end by themselves: what they do, what they say, how they exit. */
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CommandResult } from '../../lab/protocol.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, FLAGS } from './daemon.ts';
import { PROGRAM, runProgram } from './support/program.ts';
import { ourRules } from './support/rules.ts';
import { manifests } from './cluster.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080, pods: 'ac' }]);

describe('a run that ends by itself', () => {
  const lab = useLab();
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'junction-e2e-'));
    await chmod(directory, 0o755); // one test is another user
    await writeFile(join(directory, 'cluster.yaml'), WORLD);
  });
  afterAll(() => rm(directory, { recursive: true }));

  const junction = (...args: readonly string[]): Promise<CommandResult> =>
    runProgram(lab().host('node1'), ...args);
  const world = (): readonly string[] => [`--manifests=${directory}`, ...FLAGS];

  async function savedRules(): Promise<string> {
    const node = lab().host('node1');
    return `${await ourRules(node)}\n${await ourRules(node, 'ip6tables-save')}`.trim();
  }

  /** One for each table and family. */
  async function canaries(): Promise<number> {
    const node = lab().host('node1');
    const saves = [await node.run(['iptables-save']), await node.run(['ip6tables-save'])];
    return saves.join('\n').match(/^:KUBE-PROXY-CANARY /gm)?.length ?? 0;
  }

  /** As another user; where there is none, or none who can read the program, as root without rights. */
  async function asNobody(...args: readonly string[]): Promise<CommandResult> {
    const node = lab().host('node1');
    const user = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const hasUser = (await node.exec([...user, process.execPath, PROGRAM, '--version'])).exitCode === 0;
    const before = hasUser ? user : ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];
    return node.exec([...before, '--', process.execPath, PROGRAM, ...args]);
  }

  /** It failed in time, with words and without a stack. */
  function expectFailure(
    { exitCode, stderr, timedOut }: CommandResult,
    code: number,
    text: string | RegExp,
  ): void {
    expect(timedOut, `it said: ${stderr}`).toBe(false);
    expect(stderr).toMatch(text);
    expect(stderr).not.toMatch(/^ {4}at /m);
    expect(exitCode, `it said: ${stderr}`).toBe(code);
  }

  /** Leaves rules behind, as a daemon does that has gone. */
  async function leaveRules(): Promise<void> {
    const daemon = await Daemon.create(lab().host('node1'));
    await daemon.write(WORLD);
    await daemon.start();
    await daemon.close();
    expect(await savedRules()).toContain('shop/api:http');
  }

  test('--init-only sets up the system, and writes no rules but the guard that route_localnet needs', async () => {
    const node = lab().host('node1');
    const localnet = '/proc/sys/net/ipv4/conf/all/route_localnet';
    const timeout = '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait';
    await node.run(['sh', '-c', `echo 0 > ${localnet}; echo 77 > ${timeout}`]);
    const { exitCode, stderr } = await junction(...world(), '--init-only', '--conntrack-max-per-core=0');
    expect(exitCode, `it said: ${stderr}`).toBe(0);
    expect(stderr).toContain('"System initialized and --init-only specified"');
    expect(await node.run(['cat', localnet, timeout])).toBe('1\n3600\n');
    const rules = (await savedRules()).split('\n');
    expect(rules.filter((line) => !line.includes('KUBE-FIREWALL'))).toEqual([]);
    expect(rules.join('\n')).toContain('block incoming localnet connections');
  });

  test('--write-config-to writes what loads again', async () => {
    const [first, second] = [join(directory, 'first.conf'), join(directory, 'second.conf')];
    const flags = [
      '--cluster-cidr=10.244.0.0/16',
      '--masquerade-all',
      '--v=3',
      '--nodeport-addresses=primary',
    ];
    const before = await savedRules();
    const written = await junction(...flags, `--write-config-to=${first}`);
    expect(written.exitCode, `it said: ${written.stderr}`).toBe(0);
    expect(written.stderr).toContain('"Wrote configuration"');
    expect(await savedRules()).toBe(before);
    const again = await junction(`--config=${first}`, `--write-config-to=${second}`);
    expect(again.exitCode, `it said: ${again.stderr}`).toBe(0);
    const text = await readFile(first, 'utf8');
    expect(text).toContain('masqueradeAll: true');
    expect(await readFile(second, 'utf8')).toBe(text);
  });

  test('--write-config-to where nothing can be written', async () => {
    const file = join(directory, 'absent', 'file.conf');
    expectFailure(await junction(`--write-config-to=${file}`), 2, `cannot write --write-config-to ${file}`);
  });

  test.each([['--cleanup'], ['cleanup']])('%s removes everything', async (word) => {
    await leaveRules();
    await lab().host('node1').sysctl({ 'net/ipv4/conf/all/route_localnet': '0' });
    const { exitCode, stdout, stderr } = await junction(word);
    expect(exitCode, `it said: ${stderr}`).toBe(0);
    expect(stdout).toMatch(/^Removed:/);
    for (const save of ['iptables-save', 'ip6tables-save']) {
      expect(await lab().host('node1').run([save])).not.toContain('KUBE-');
    }
    expect((await junction(word)).stdout).toBe('Nothing of ours was there.\n');
  });

  test('cleanup after a run with the examples says what docs/iptables.md shows', async () => {
    const daemon = await Daemon.create(lab().host('node1'));
    const files = (await readdir(EXAMPLES)).filter((name) => name.endsWith('.yaml')).sort();
    const texts = await Promise.all(files.map((name) => readFile(join(EXAMPLES, name), 'utf8')));
    await daemon.write(texts.join('\n---\n'));
    await daemon.start();
    // They come beside the first sync.
    await expect.poll(canaries).toBe(6);
    await daemon.close();
    const { stdout } = await junction('cleanup');
    const page = await readFile(join(EXAMPLES, '../docs/iptables.md'), 'utf8');
    const shown = /^<!-- checked: test\/e2e\/invocation\.test\.ts -->\n```\n([^]*?)^```$/m.exec(page)?.[1];
    // Only where the kernel has nfacct.
    const withoutCounters = (text: string | undefined): string | undefined =>
      text?.replaceAll(/^Removed the counter .*\n/gm, '');
    expect(withoutCounters(stdout)).toBe(withoutCounters(shown));
  });

  test('cleanup by somebody who may not says so, and claims nothing', async () => {
    await leaveRules();
    const before = await savedRules();
    const result = await asNobody('cleanup');
    expect(result.stdout).not.toContain('Nothing of ours');
    expectFailure(result, 1, /root|permi|denied/i);
    expect(await savedRules()).toBe(before);
    await junction('cleanup');
  });

  test('a configuration file that cannot be read', async () => {
    const file = join(directory, 'absent.conf');
    expectFailure(await junction(`--config=${file}`), 2, `cannot read --config ${file}`);
    expectFailure(await junction(`--config=${directory}`), 2, `cannot read --config ${directory}`);
  });

  test('the mode nftables sets up nothing but conntrack with --init-only', async () => {
    const node = lab().host('node1');
    const localnet = '/proc/sys/net/ipv4/conf/all/route_localnet';
    await node.run(['sh', '-c', `echo 0 > ${localnet}`]);
    const before = await savedRules();
    const result = await junction(...world(), '--proxy-mode=nftables', '--init-only');
    expect(result.exitCode, `it said: ${result.stderr}`).toBe(0);
    expect(result.stderr).toContain('"System initialized and --init-only specified"');
    expect(await node.run(['cat', localnet])).toBe('0\n');
    expect(await savedRules()).toBe(before);
    expect(await node.run(['nft', 'list', 'tables'])).not.toContain('junction');
  });

  test('the mode nftables, by somebody who may not', async () => {
    const result = await asNobody('run', ...world(), '--proxy-mode=nftables');
    expectFailure(result, 1, 'capability NET_ADMIN');
  });

  test('the mode ipvs, with a scheduler that no kernel has', async () => {
    const before = await savedRules();
    const result = await junction(...world(), '--proxy-mode=ipvs', '--ipvs-scheduler=nosuch');
    expectFailure(result, 1, 'ip_vs');
    expect(result.stderr).toContain('modprobe ip_vs');
    expect(await savedRules()).toBe(before);
  });

  test('somebody who may not run it', async () => {
    expectFailure(await asNobody('run', ...world()), 1, /root/i);
  });
});
