/** What guest.real.test.ts runs in a kernel that has IPVS. Prints what the program said, and the world around it. */
import { spawnSync } from 'node:child_process';

/** This kernel is built without nftables for IPv4. */
const LEGACY = '--iptables-variant=legacy';
const script = process.env['JUNCTION_SCRIPT'] ?? '';

// Whoever looks at a table of legacy's makes it: no check could leave that undone.
for (const program of ['iptables-legacy', 'ip6tables-legacy'])
  for (const table of ['nat', 'filter']) run(program, ['-t', table, '-S']);
const before = world();
const rr = check('--ipvs-scheduler=rr');
const afterwards = world();
const standard = check();
const nosuch = check('--ipvs-scheduler=nosuch');
const text = run(process.execPath, [script, 'check', '--proxy-mode=ipvs', LEGACY]).stdout;
const nft = check('--iptables-variant=nft');
const nftables = check('--proxy-mode=nftables');
const nftablesIpv4 = check('--proxy-mode=nftables', '--family=ipv4');
run('ip', ['link', 'add', 'kube-ipvs0', 'type', 'bridge']);
const taken = check();
run('ip', ['link', 'delete', 'kube-ipvs0']);
run('ip', ['link', 'add', 'kube-ipvs0', 'type', 'dummy']);
const made = check();
run('ip', ['link', 'delete', 'kube-ipvs0']);

console.log(
  JSON.stringify({
    before,
    rr,
    afterwards,
    standard,
    nosuch,
    text,
    nft,
    nftables,
    nftablesIpv4,
    taken,
    made,
    atLast: world(),
  }),
);

function check(...args: readonly string[]): unknown {
  const { status, stdout, stderr } = run(process.execPath, [
    script,
    'check',
    '--proxy-mode=ipvs',
    '--output=json',
    LEGACY,
    ...args,
  ]);
  return { status, stderr, ...(stdout === '' ? {} : (JSON.parse(stdout) as object)) };
}

function world(): string {
  return [
    run('iptables-legacy-save', []),
    run('ip6tables-legacy-save', []),
    run('ip', ['-brief', 'link']),
    run('ipset', ['list', '-name']),
    run('ipvsadm', ['--save', '--numeric']),
  ]
    .map(({ stdout }) => stdout)
    .join('')
    .replaceAll(/^# .*\n/gm, '');
}

function run(
  program: string,
  args: readonly string[],
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(program, args, { encoding: 'utf8' });
}
