import { describe, expect, test } from 'vitest';
import { parseSave } from '../../src/modes/iptables/rules/parse.ts';
import { applyRestore } from '../modes/iptables/rules/restore.ts';
import { COMMANDS, commandFlags } from '../../src/cli/commands.ts';
import { VERSION } from '../../src/version.ts';
import { EMPTY } from '../modes/iptables/rules/fakeKernel.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const manifest = useFiles();

const SHOP = manifest(
  'shop.yaml',
  `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.1
  ports: [{ name: http, port: 80, nodePort: 30080 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.244.0.1], nodeName: node-a }
  - { addresses: [10.244.1.1], nodeName: node-b }
`,
);

const BROKEN = manifest(
  'broken.yaml',
  `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.96.0.1, ports: [{ port: 70000 }] }
`,
);

describe('help', () => {
  test.each(COMMANDS)('$name names every flag that does something', async (command) => {
    const { code, out } = await junction(command.name, '--help');
    expect(code).toBe(0);
    const flags = commandFlags(command).filter(
      ({ deprecated, ignored }) => deprecated === undefined && !ignored,
    );
    for (const { name } of flags) expect(out).toContain(`--${name}`);
    expect(out).toContain('Examples:');
  });

  test('all commands are named', async () => {
    const { code, out } = await junction('--help');
    expect(code).toBe(0);
    for (const command of ['run', 'plan', 'cleanup']) expect(out).toContain(command);
  });

  test.each(COMMANDS)('help $name is $name --help', async ({ name }) => {
    expect(await junction('help', name)).toEqual(await junction(name, '--help'));
  });

  test.each(['help', '-h', '--help'])('%s, and no word at all, explain the commands', async (word) => {
    expect(await junction(word)).toEqual(await junction());
  });

  test.each([[[]], ...COMMANDS.map(({ name }) => [[name]])])('%j --help fits 80 columns', async (words) => {
    const { out } = await junction(...words, '--help');
    const wide = out.split('\n').filter((line) => line.length > 80);
    // A flag and its values are one word.
    expect(wide.filter((line) => !/^ +--detect-local-mode \S+$/.test(line))).toEqual([]);
  });

  test('an example that is broken is one command of the shell', async () => {
    const { out } = await junction('plan', '--help');
    const [, examples = ''] = /Examples:\n(.*?)\n\n/s.exec(out) ?? [];
    const whole = examples.replaceAll(' \\\n    ', ' ').split('\n');
    const { examples: known = [] } = COMMANDS.find(({ name }) => name === 'plan') ?? {};
    expect(whole).toEqual(known.map((example) => `  ${example}`));
    expect(examples).not.toMatch(/--[\w-]+ \\\n +[^-| ]/);
  });

  test('the version', async () => {
    expect(await junction('--version')).toMatchObject({ code: 0, out: `Junction v${VERSION}\n` });
  });
});

describe('exit codes', () => {
  const table: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['plan', '--manifests', SHOP], 0, /^$/],
    [['plan', '--manifests', BROKEN], 1, /broken\.yaml:\d+: .*70000/],
    [['plan', '--manifests', '/nowhere'], 1, /nowhere/],
    [['plan'], 2, /--manifests and --kubeconfig are missing/],
    [['plan', '--manifests', SHOP, '--family=ipv7'], 2, /ipv7.*--family/],
    [['plan', '--manifests', SHOP, '--bogus'], 2, /bogus/],
    [['plan', '--manifests', SHOP, 'extra'], 2, /extra/],
    [['plan', '--familly', 'ipv4'], 2, /did you mean --family/i],
    [['plam'], 2, /unknown command "plam"/],
  ];
  test.each(table)('%j: %d', async (args, code, err) => {
    const run = await junction(...args);
    expect(run.code).toBe(code);
    expect(run.err).toMatch(err);
    expect(run.err).not.toMatch(/\n\s+at .*\.ts:/);
  });
});

describe('junction plan', () => {
  test('prints what iptables-restore takes', async () => {
    const { code, out } = await junction(
      'plan',
      '--manifests',
      SHOP,
      '--hostname-override=node-a',
      '--cluster_cidr=10.244.0.0/16,fd00:244::/32',
      '--family=ipv4',
    );
    expect(code).toBe(0);
    const tables = applyRestore(parseSave(EMPTY), out);
    expect(tables.get('nat')?.get('KUBE-SERVICES')?.rules).toHaveLength(2);
    expect(out).toContain('"shop/web:http -> 10.244.0.1:8080"');
    expect(out).toContain('! -s 10.244.0.0/16');
  });

  test('both families, one after the other', async () => {
    const { out } = await junction('plan', '--manifests', SHOP);
    expect(out.match(/^# IP.*$/gm)).toEqual([
      '# IPv4, layout current, for: iptables-restore --noflush',
      '# IPv6, layout current, for: ip6tables-restore --noflush',
    ]);
    const [head, ...parts] = out.split(/^(?=# IPv)/m);
    expect(head).toMatch(/^Two families, two programs: .*--family/);
    for (const part of parts) expect(() => applyRestore(parseSave(EMPTY), part)).not.toThrow();
  });

  test('in the other layout', async () => {
    const { out } = await junction('plan', '--manifests', SHOP, '--iptables-layout=classic', '--family=ipv4');
    expect(out).toContain('KUBE-MARK-DROP');
    expect(() => applyRestore(parseSave(EMPTY), out)).not.toThrow();
  });

  test('with another bit, and everybody masqueraded', async () => {
    const { out } = await junction(
      'plan',
      '--manifests',
      SHOP,
      '--family=ipv4',
      '--iptables-masquerade-bit=31',
      '--masquerade-all',
    );
    expect(out).toContain('-j MARK --or-mark 0x80000000');
    expect(out).toContain('--dport 80 -j KUBE-MARK-MASQ');
  });

  test('as JSON', async () => {
    const { out } = await junction('plan', '--manifests', SHOP, '--family=ipv4', '--output=json');
    const parsed = JSON.parse(out) as {
      readonly families: readonly { readonly servicePorts: readonly unknown[] }[];
    };
    expect(parsed.families[0]?.servicePorts).toHaveLength(1);
  });
});

describe('flags of another command', () => {
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [['cleanup', '--cluster-cidr=10.0.0.0/8'], /flag --cluster-cidr has no effect on this command/],
    [['check', '--kubeconfig=/k'], /flag --kubeconfig has no effect on this command/],
    [
      ['plan', '--manifests', SHOP, '--oom-score-adj=1'],
      /flag --oom-score-adj has no effect on this command/,
    ],
    [['run', '--dry-run'], /unknown flag: --dry-run/],
    [['cleanup', '--wait-for-proxy=kube-proxy'], /--wait-for-proxy.*ip or ip:port/],
    [['cleanup', '--wait-for-proxy=127.0.0.1', '--force'], /--force and --wait-for-proxy contradict/],
    [['cleanup', '--timeout=1m'], /--timeout has no effect without --wait-for-proxy/],
    [['cleanup', '--wait-for-proxy=127.0.0.1', '--timeout=-1s'], /--timeout must not be negative/],
    [['cleanup', '--wait-for-proxy=127.0.0.1', '--timeout=10'], /must be a duration.*perhaps 10s/],
  ];
  test.each(table)('%j', async (args, err) => {
    const run = await junction(...args);
    expect({ code: run.code, out: run.out }).toEqual({ code: 2, out: '' });
    expect(run.err).toMatch(err);
  });

  test('help has only those of its command', async () => {
    const { out } = await junction('cleanup', '--help');
    expect(out).toContain('--iptables-variant');
    expect(out).not.toContain('--cluster-cidr');
  });

  test('a file is for the proxy, so all of it is taken', async () => {
    const config = manifest(
      'config.yaml',
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.244.0.0/16\noomScoreAdj: 5\n',
    );
    const { code } = await junction('plan', '--config', config, '--manifests', SHOP);
    expect(code).toBe(0);
  });
});

test.each([
  ['plam', 'plan'],
  ['clean', 'cleanup'],
  ['chekc', 'check'],
])('%s: did you mean %s', async (word, meant) => {
  const problem = `junction: unknown command "${word}" (did you mean ${meant}?)\n`;
  const see = '  what to do: junction --help explains the commands\n';
  for (const words of [[word], ['help', word]])
    expect(await junction(...words)).toEqual({ code: 2, out: '', err: `${problem}${see}` });
});

test.each([
  [
    ['plan', 'examples'],
    'unexpected argument "examples": there are flags only (did you mean --manifests examples?)',
  ],
  [['plan', '--manifests', 'a', 'b'], 'unexpected argument "b": there are flags only'],
  [['plan', 'table'], 'unexpected argument "table": there are flags only (did you mean --output table?)'],
  [
    ['check', 'nftables'],
    'unexpected argument "nftables": there are flags only (did you mean --proxy-mode nftables?)',
  ],
  [
    ['cleanup', 'nftables'],
    'unexpected argument "nftables": there are flags only (did you mean --mode nftables?)',
  ],
  [['check', '--mode', 'nftables'], 'unknown flag: --mode (did you mean --proxy-mode?)'],
  [
    ['cleanup', '--proxy-mode', 'nftables'],
    'flag --proxy-mode has no effect on this command: it is one of junction run (did you mean --mode?)',
  ],
  [['plan', '-f', 'examples'], "unknown shorthand flag: 'f' in -f (did you mean --manifests?)"],
  [['version', '--constructor'], 'unknown flag: --constructor'],
])('%j: the flag that was meant, and where they are listed', async ([name = '', ...rest], problem) => {
  const err = `junction: ${problem}\n  what to do: junction ${name} --help lists its flags\n`;
  expect(await junction(name, ...rest)).toEqual({ code: 2, out: '', err });
});

test('an error has its code, as docs/errors.md has it', async () => {
  const { err } = await junction('plan', '--kubeconfig', '/nowhere');
  expect(err).toMatch(/^junction: kubeconfig \/nowhere: .* \(KUBECONFIG_[A-Z]+\)\n/);
});

describe('version', () => {
  test('with commit and build date, for people and for machines', async () => {
    const text = await junction('version');
    expect(text).toMatchObject({ code: 0, err: '' });
    expect(text.out).toMatch(/^Junction v[\d.]+\n {2}commit {2}\S+\n {2}built {3}\S+\n {2}Node {4}v\d+/);
    expect((await junction('--version=raw')).out).toBe(text.out);
    const { out } = await junction('version', '--output=json');
    expect(JSON.parse(out)).toEqual({
      version: `v${VERSION}`,
      commit: expect.any(String),
      buildDate: expect.any(String),
      node: process.version,
    });
  });
});
