/**
 * What each command prints: a good case or more, a bad one, and its help, as golden/*.txt hold them. The inputs are the examples,
 * a bundle of them, and machines as tables. To write the files again: npx vitest run test/cli/golden.test.ts -u
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { checkCommand } from '../../src/cli/checkCommand.ts';
import { COMMANDS, type CommandName } from '../../src/cli/commands.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { VERSION } from '../../src/version.ts';
import { fromFlags, valid } from '../config/given.ts';
import { fakeMachine, type Lacks } from '../modes/prerequisites/fakeMachine.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { FakeIptables } from '../scenarios/fakeIptables.ts';
import { TAKEN_AT, writeExampleBundle } from './bundleFile.ts';
import { cleaned, writtenKernel } from './cleaned.ts';
import { useFiles } from './files.ts';
import { captured, junction, type Run } from './junction.ts';
import { StubApi } from './stubApi.ts';
import { UiProgram } from './uiProgram.ts';

const file = useFiles();
const stub = new StubApi();
const BUNDLE = file('node1.json.gz', '');
const TEMPORARY = dirname(BUNDLE);

beforeAll(async () => {
  // Of the age of things, and of the time zone, tables speak.
  vi.useFakeTimers({ toFake: ['Date'], now: TAKEN_AT + 60_000 });
  vi.stubEnv('TZ', 'UTC');
  await writeExampleBundle(BUNDLE, [
    ...EVENTS.map((event) => ({ kind: 'event', event }) as const),
    { kind: 'status', status: FULL_STATUS },
  ]);
  stub.answer('/v1/status', FULL_STATUS);
  stub.answer('/v1/events', EVENTS);
  const lines = gunzipSync(readFileSync(BUNDLE)).toString();
  stub.answer('/v1/snapshot', lines.match(/^\{"kind":"(?:header|object)".*\n/gm)?.join(''));
  await stub.start();
});
afterAll(async () => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  await stub.remove();
});

const at = TAKEN_AT - 20_000;
const CHANGE = {
  id: 7,
  family: 'IPv4',
  service: 'shop/web',
  causes: ['EndpointSlice shop/web-1: endpoint 10.1.0.7 not ready'],
  effects: ['shop/web:http/TCP: endpoint 10.1.0.7:80 removed from cluster'],
  seenAt: at - 3,
  plannedAt: at - 2,
  committedAt: at,
} as const;
const EVENTS = [
  { kind: 'change', ...CHANGE },
  { kind: 'sync', at, family: 'IPv6', sync: 'incremental', cause: 'x', commits: 1, objects: 1204, ms: 4.123 },
  { kind: 'foreign', at, family: 'IPv4', objects: ['chain nat X'], program: 'nft (pid 7)', repairedMs: 12.4 },
  { kind: 'refused', at, family: 'IPv4', servicePort: 'bank/db:sql/TCP', error: 'No space left' },
  { kind: 'conntrack', at, family: 'IPv4', deleted: 1, ms: 0.84 },
] as const;

const NODE = '--hostname-override node1 --cluster-cidr 10.244.0.0/16,fd00:244::/32';
const SHOP = `--manifests examples ${NODE}`;
const WEB = `--manifests examples/web.yaml,examples/node.yaml ${NODE} --family ipv4`;
const OLD = `--bundle ${BUNDLE}`;
const ABSENT = '--api-socket /nowhere/junction.sock';

interface Special {
  /** What stands for the command line. */
  readonly title: string;
  readonly run: () => Promise<Run>;
}
type Case = string | Special;

function check(title: string, lacks: Lacks, columns: number | undefined, ...flags: readonly string[]): Case {
  const options = { families: FAMILIES, output: title.endsWith('JSON') ? 'json' : 'text', columns };
  const machine = fakeMachine(lacks);
  const run = () => captured((output) => checkCommand(valid(fromFlags(...flags)), output, options, machine));
  return { title: `junction check ${flags.join(' ')} (${title})`, run };
}

const TABLES = [{ family: 'ip', table: 'junction', objects: 37 }] as const;

function cleanup(title: string, clean: () => Promise<Run>): Case {
  return { title: `junction cleanup --dry-run (${title})`, run: clean };
}

const PAGE: Special = {
  title: `junction ui --api-socket ${stub.socket}`,
  run: async () => {
    const { out, err } = await UiProgram.serving([`--api-socket=${stub.socket}`]);
    return { code: 0, out, err };
  },
};

const WRITTEN = file('config.yaml', '');
const CONFIGURATION: Special = {
  title: `junction run --proxy-mode nftables --cluster-cidr 10.244.0.0/16 --healthz-port 1 --write-config-to ${WRITTEN}`,
  run: async () => {
    const { err, code } = await junction(...CONFIGURATION.title.split(' ').slice(1));
    return { code, err, out: readFileSync(WRITTEN, 'utf8') };
  },
};

/** What bash offers for the last word. */
function tab(...words: readonly string[]): Case {
  const script = `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _junction; echo "\${COMPREPLY[*]}"`;
  const run = async (): Promise<Run> => {
    const { code, out } = await junction('completion', 'bash');
    const argv = ['-c', `${out}${script}`, 'bash', 'junction', ...words];
    return { code, out: execFileSync('bash', argv, { encoding: 'utf8' }), err: '' };
  };
  return { title: `junction ${words.join(' ')}TAB`, run };
}

/** The last one is a mistake. */
const CASES: Readonly<Record<CommandName, readonly Case[]>> = {
  run: [CONFIGURATION, 'junction run --proxy-mode ebpf --oom-score-adj 2000'],
  explain: [
    `junction explain shop/web ${SHOP}`,
    `junction explain shop/web ${OLD}`,
    `junction explain --from pod/shop/pod-a --to svc/shop/api:http ${SHOP}`,
    `junction explain --from 198.18.0.10 --to 203.0.113.10:80 ${SHOP}`,
    `junction explain --from node --to svc/shop/idle ${SHOP}`,
    `junction explain --from outside --to 10.96.0.20:81 ${SHOP}`,
    `junction explain shop/wep ${SHOP}`,
  ],
  services: [
    `junction services ${SHOP}`,
    `junction services -o wide ca* ${SHOP}`,
    `junction services nowhere ${SHOP}`,
    `junction services ${ABSENT}`,
  ],
  endpoints: [
    `junction endpoints shop/web ${SHOP}`,
    `junction endpoints -n shop svc/idle ${SHOP}`,
    'junction endpoints',
  ],
  status: [`junction status --api-socket ${stub.socket}`, `junction status --wait ${OLD}`],
  watch: [`junction watch ${OLD}`, `junction watch -n shop -o json ${OLD}`, `junction watch ${ABSENT}`],
  ui: [PAGE, 'junction ui a.json.gz --manifests examples'],
  plan: [
    `junction plan ${WEB}`,
    `junction plan -o table ${WEB}`,
    `junction plan --manifests /nowhere ${NODE}`,
  ],
  check: [
    check('everything is there', {}, undefined, '--proxy-mode=iptables'),
    check('a nicety is not', { iptables: { refuses: ['-m recent'] } }, 80, '--iptables-layout=classic'),
    check('no capability, as JSON', { capabilities: '0' }, undefined, '--proxy-mode=nftables'),
    'junction check --proxy-mode userspace',
  ],
  cleanup: [
    cleanup('rules, and a table', async () =>
      cleaned(await writtenKernel(), {}, { tables: { tables: TABLES } }),
    ),
    cleanup('nothing', () => cleaned(new FakeIptables())),
    cleanup('nothing, as JSON', () => cleaned(new FakeIptables(), { output: 'json' })),
    cleanup('a chain that others use', async () => {
      const kernel = await writtenKernel();
      kernel.change('*nat\n:HOSTPORTS - [0:0]\n-A HOSTPORTS -j KUBE-MARK-MASQ\nCOMMIT\n');
      return cleaned(kernel);
    }),
    cleanup('a guard that is needed', async () =>
      cleaned(await writtenKernel(), {}, { routesLocalnet: () => true }),
    ),
    cleanup('no iptables, and what the kernel will not let go of', () =>
      cleaned(undefined, {}, { tables: { failures: ['table ip junction: EBUSY'] } }),
    ),
    'junction cleanup --wait-for-proxy 127.0.0.1 --force',
  ],
  doctor: [`junction doctor ${OLD}`, 'junction doctor --only firewal'],
  diff: [
    `junction diff ${SHOP} --to-hostname-override node2 --family ipv6`,
    `junction diff --manifests examples/idle.yaml,examples/node.yaml ${NODE} --to-manifests examples/dns.yaml --family ipv4`,
    `junction diff ${SHOP} --to-manifests a --to-kubeconfig b`,
  ],
  bundle: [
    `junction bundle --family ipv6 --api-socket ${stub.socket} -o ${TEMPORARY}/b.gz`,
    `junction bundle ${ABSENT}`,
  ],
  version: ['junction version', 'junction version --output json', 'junction version --outptu json'],
  completion: [
    tab('c'),
    tab('cleanup', '--d'),
    tab('cleanup', '--cluster'),
    tab('run', '--cluster'),
    tab('--proxy-m'),
    tab('plan', '--output', ''),
    tab('run', '--proxy-mode', '=', 'n'),
    tab('completion', ''),
    tab('ui', '/etc/hosts'),
    tab('plan', '--manifests', '/etc/hosts'),
    'junction completion tcsh',
  ],
};

describe.each(Object.entries(CASES))('%s', (name, cases) => {
  test('prints what it printed', async () => {
    const parts: string[] = [];
    for (const each of cases) {
      const { title, run } = typeof each === 'string' ? ofLine(each) : each;
      parts.push(transcript(title, await run()));
    }
    parts.push(transcript(`junction ${name} --help`, await helpOf(name)));
    await expect(withoutChance(parts.join('\n'))).toMatchFileSnapshot(`golden/${name}.txt`);
  });
});

test('junction', async () => {
  const parts = [
    transcript('junction', await junction()),
    transcript('junction plam', await junction('plam')),
  ];
  await expect(parts.join('\n')).toMatchFileSnapshot('golden/junction.txt');
});

test('every command has its cases', () => {
  expect(Object.keys(CASES).sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
});

function ofLine(line: string): Special {
  return { title: line, run: () => junction(...line.split(' ').slice(1)) };
}

function transcript(title: string, { code, out, err }: Run): string {
  return `$ ${title}\n${out}${err.replaceAll(/^(?=.)/gm, '2> ')}exit code ${code}\n`;
}

/** Flags that are those of `run` are named only. */
async function helpOf(name: string): Promise<Run> {
  const help = await junction(name, '--help');
  if (name === 'run') return help;
  const known = new Set(flagsOf((await junction('run', '--help')).out));
  let out = help.out;
  const shared = flagsOf(out).filter((flag) => known.has(flag));
  for (const flag of shared) out = out.replace(flag, `  as of run: ${/--[\w-]+/.exec(flag)?.[0]}\n`);
  out = out.replaceAll(/\n {2}as of run:/g, ',').replaceAll(/\n\n(.*):,/g, '\n$1, as of run:');
  return { ...help, out };
}

/** Each with its help, which begins further to the right. */
function flagsOf(help: string): readonly string[] {
  return help.match(/^ {2}(?:-\w,| {3}) --.*\n(?: {10,}.*\n)*/gm) ?? [];
}

/** What differs from run to run, and from machine to machine. */
function withoutChance(text: string): string {
  return text
    .replaceAll(TEMPORARY, 'TMP')
    .replaceAll(dirname(stub.socket), 'TMP')
    .replaceAll(/\d+ KiB/g, 'N KiB')
    .replaceAll(/127\.0\.0\.1:\d{4,}\/$/gm, '127.0.0.1:PORT/')
    .replaceAll(/^2> ([IWE])\d{4} [\d:.]+ +\d+ \S+\]/gm, '2> $1')
    .replaceAll(process.version, 'NODE')
    .replaceAll(`v${VERSION}`, 'VERSION')
    .replaceAll(/(commit"?:? +"?)[\w-]+/g, '$1COMMIT')
    .replaceAll(/(built|buildDate"?:?)( +"?)[\w:.-]+/g, '$1$2DATE');
}
