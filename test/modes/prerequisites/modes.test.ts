/** Every way in which a machine can lack something, by a machine that is made up. */
import { describe, expect, test } from 'vitest';
import { type Check, type PreflightSettings, readinessOf } from '../../../src/modes/prerequisites/check.ts';
import { checkMode } from '../../../src/modes/prerequisites.ts';
import { JunctionError } from '../../../src/errors.ts';
import { FAMILIES } from '../../../src/model/ip.ts';
import { type FakeMachine, fakeMachine, type Lacks } from './fakeMachine.ts';

const SETTINGS: PreflightSettings = {
  layout: 'current',
  localhostNodePorts: true,
  scheduler: 'rr',
  strictArp: false,
};

type Mode = 'iptables' | 'ipvs';

async function check(
  mode: Mode,
  machine: FakeMachine,
  settings: Partial<PreflightSettings> = {},
): Promise<readonly Check[]> {
  const checks = await checkMode(mode, { ...SETTINGS, ...settings }, FAMILIES, machine);
  expect(machine.clients.flatMap((client) => [...client.chains])).toEqual([]);
  expect([...machine.trialObjects]).toEqual([]);
  return checks;
}

/** `missing kernel module ip_vs`, of what is not simply there. */
function troubles(checks: readonly Check[]): readonly string[] {
  return checks.filter(({ state }) => state !== 'present').map(({ state, subject }) => `${state} ${subject}`);
}

const XT = ['-m addrtype', '-m mark', '-j MARK', '-j MASQUERADE', '-m statistic', '-m recent', '-m sctp'];

const CASES: readonly (readonly [Mode, string, Lacks, Partial<PreflightSettings>, readonly string[]])[] = [
  ['iptables', 'nothing', {}, {}, []],
  ['iptables', 'nothing, legacy', { iptables: { variant: 'legacy' } }, {}, []],
  ['iptables', 'NET_ADMIN', { capabilities: '0' }, {}, ['missing capability NET_ADMIN']],
  [
    'iptables',
    'iptables',
    { programs: ['iptables', 'ip6tables'] },
    {},
    ['missing programs iptables, -save, -restore', 'missing programs ip6tables, -save, -restore'],
  ],
  [
    'iptables',
    'one of the programs',
    { programs: ['iptables-save'] },
    {},
    ['missing programs iptables, -save, -restore'],
  ],
  ['iptables', 'IPv6', { ipv6: false }, {}, ['degraded IPv6']],
  [
    'iptables',
    "IPv6's nat table",
    { iptablesOf: { IPv6: { lacksTables: ['nat'] } } },
    {},
    ['degraded iptables nat table, IPv6'],
  ],
  [
    'iptables',
    'both nat tables',
    { iptables: { lacksTables: ['nat'] } },
    {},
    ['missing iptables nat table, IPv4', 'missing iptables nat table, IPv6'],
  ],
  [
    'iptables',
    'xt_statistic',
    { iptables: { refuses: ['-m statistic'] } },
    {},
    ['missing iptables match statistic'],
  ],
  ['iptables', 'xt_recent', { iptables: { refuses: ['-m recent'] } }, {}, ['degraded iptables match recent']],
  ['iptables', 'xt_sctp', { iptables: { refuses: ['-m sctp'] } }, {}, ['degraded iptables match sctp']],
  [
    'iptables',
    'xt_recent, legacy',
    { iptables: { refuses: ['-m recent'], variant: 'legacy' } },
    {},
    ['degraded iptables match recent'],
  ],
  ['iptables', 'nft_compat', { iptables: { refuses: XT } }, {}, ['missing kernel module nft_compat']],
  ['iptables', 'counters', { counters: false }, {}, ['degraded kernel module nfnetlink_acct']],
  ['iptables', 'counters, which classic has none of', { counters: false }, { layout: 'classic' }, []],
  [
    'iptables',
    'the match for counters',
    { iptables: { refuses: ['-m nfacct'] } },
    {},
    ['missing iptables match nfacct'],
  ],
  [
    'iptables',
    'br_netfilter',
    { sysctls: { 'net/bridge/bridge-nf-call-iptables': undefined } },
    { layout: 'classic' },
    ['unknown iptables match physdev'],
  ],
  [
    'iptables',
    'the table of flows',
    { modules: ['nf_conntrack_netlink'] },
    {},
    ['degraded kernel module nf_conntrack_netlink'],
  ],
  [
    'iptables',
    'a writable /proc/sys',
    { readOnlySysctls: true },
    {},
    ['degraded sysctl net.ipv4.conf.all.route_localnet'],
  ],
  [
    'iptables',
    'a writable /proc/sys, and it is not needed',
    { readOnlySysctls: true },
    { localhostNodePorts: false },
    [],
  ],
  [
    'iptables',
    'the lock',
    { iptables: { error: new JunctionError('XTABLES_LOCK_HELD', 'held by firewalld') } },
    {},
    ['unknown iptables nat table, IPv4', 'unknown iptables nat table, IPv6'],
  ],
  [
    'iptables',
    'a lock file',
    { iptables: { error: new JunctionError('XTABLES_LOCK_UNUSABLE', 'no /run/xtables.lock') } },
    {},
    ['unknown iptables nat table, IPv4', 'unknown iptables nat table, IPv6'],
  ],

  ['ipvs', 'nothing', {}, {}, []],
  ['ipvs', 'NET_ADMIN', { capabilities: '0' }, {}, ['missing capability NET_ADMIN']],
  [
    'ipvs',
    'IPVS',
    { modules: ['ip_vs'] },
    {},
    ['missing kernel module ip_vs', 'unknown IPVS scheduler rr', 'unknown sysctls net.ipv4.vs.*'],
  ],
  [
    'ipvs',
    'modules that modprobe brings',
    { unloaded: ['ip_vs', 'ip_vs_rr', 'dummy', 'ip_set_hash_ip'] },
    {},
    [],
  ],
  ['ipvs', 'the scheduler', {}, { scheduler: 'nosuch' }, ['missing IPVS scheduler nosuch']],
  ['ipvs', 'the dummy device', { modules: ['dummy'] }, {}, ['missing kernel module dummy']],
  ['ipvs', 'nothing, with the device made', { modules: ['dummy'], link: { kind: 'dummy' } }, {}, []],
  ['ipvs', 'the name of the device', { link: { kind: 'bridge' } }, {}, ['missing device kube-ipvs0']],
  [
    'ipvs',
    'types of sets',
    { modules: ['ip_set_hash_ipportnet', 'ip_set_bitmap_port'] },
    {},
    ['missing kernel modules ip_set_hash_ipportnet, ip_set_bitmap_port'],
  ],
  [
    'ipvs',
    'sets that rules can match',
    { modules: ['ip_set_hash_ip'] },
    {},
    ['missing kernel module ip_set_hash_ip', 'unknown iptables match set'],
  ],
  ['ipvs', 'xt_physdev', { iptables: { refuses: ['-m physdev'] } }, {}, ['degraded iptables match physdev']],
  ['ipvs', 'xt_set', { iptables: { refuses: ['-m set'] } }, {}, ['missing iptables match set']],
  ['ipvs', 'xt_ipvs', { iptables: { refuses: ['-m ipvs'] } }, {}, ['degraded iptables match ipvs']],
  [
    'ipvs',
    "the program's part of ipvs",
    { iptables: { lacksLibrary: ['-m ipvs'] } },
    {},
    ['degraded iptables match ipvs'],
  ],
  [
    'ipvs',
    'a writable /proc/sys',
    { readOnlySysctls: true },
    { strictArp: true },
    [
      'missing sysctl net.ipv4.vs.conntrack',
      'missing sysctl net.ipv4.vs.expire_nodest_conn',
      'missing sysctl net.ipv4.conf.all.arp_ignore',
      'missing sysctl net.ipv4.conf.all.arp_announce',
    ],
  ],
  [
    'ipvs',
    "IPVS's use of connection tracking",
    { sysctls: { 'net/ipv4/vs/conntrack': undefined } },
    {},
    ['missing sysctl net.ipv4.vs.conntrack'],
  ],
];

describe.each(CASES)('%s mode on a machine that lacks %s', (mode, _, lacks, settings, expected) => {
  test('says so, with what brings it', async () => {
    const arp = { 'net/ipv4/conf/all/arp_ignore': '0', 'net/ipv4/conf/all/arp_announce': '0' };
    const machine = fakeMachine({ ...lacks, sysctls: { ...arp, ...lacks.sysctls } });
    const checks = await check(mode, machine, settings);
    expect(troubles(checks)).toEqual(expected);
    const bad = checks.filter(({ state }) => state !== 'present');
    for (const { found, remedy } of bad) expect([found, remedy]).not.toContain('');
    const isMissing = expected.some((text) => text.startsWith('missing'));
    expect(readinessOf(checks) === 'no').toBe(isMissing);
  });
});

describe('the words', () => {
  test('without NET_ADMIN nothing is tried', async () => {
    const machine = fakeMachine({ capabilities: '0' });
    expect(await check('ipvs', machine)).toEqual([
      {
        subject: 'capability NET_ADMIN',
        state: 'missing',
        needed: 'always',
        found: 'this process may not change the network',
        remedy: expect.stringContaining('with the capability NET_ADMIN'),
      },
    ]);
    expect(machine.trials).toEqual([]);
    expect(machine.clients).toEqual([]);
  });

  test('a refused match names its module, and where it was refused', async () => {
    const checks = await check('iptables', fakeMachine({ iptables: { refuses: ['-j REJECT'] } }));
    expect(checks.find(({ state }) => state === 'missing')).toEqual({
      subject: 'iptables target REJECT',
      state: 'missing',
      needed: 'always',
      found: 'refused in filter IPv4, filter IPv6: the kernel does not have it ("No such file or directory")',
      remedy: expect.stringMatching(
        /^Kernel modules ipt_REJECT, ip6t_REJECT\. modprobe -a ipt_REJECT ip6t_REJECT/,
      ),
    });
  });

  test('what the program lacks is not looked for in the kernel', async () => {
    const checks = await check('ipvs', fakeMachine({ iptables: { lacksLibrary: ['-m ipvs'] } }));
    expect(checks.find(({ state }) => state === 'degraded')?.remedy).toMatch(
      /^The programs lack it, not the kernel/,
    );
  });

  test('a device of another kind is left alone', async () => {
    const machine = fakeMachine({ link: { kind: 'bridge' } });
    const checks = await check('ipvs', machine);
    expect(checks.find(({ state }) => state === 'missing')).toMatchObject({
      found: 'it is there, and is no dummy device but bridge',
      remedy: expect.stringContaining('ip link delete kube-ipvs0'),
    });
    expect(machine.trials).not.toContain('link of kind dummy');
  });

  test('a scheduler that a virtual server has needs no trial', async () => {
    const machine = fakeMachine({ schedulersInUse: ['mh'], schedulers: [] });
    expect(troubles(await check('ipvs', machine, { scheduler: 'mh' }))).toEqual([]);
    expect(machine.trials).toEqual(['link of kind dummy']);
  });

  test('settings that are right need not be writable', async () => {
    const sysctls = {
      'net/ipv4/vs/conntrack': '1',
      'net/ipv4/vs/expire_nodest_conn': '1',
      'net/ipv4/vs/expire_quiescent_template': '1',
    };
    expect(troubles(await check('ipvs', fakeMachine({ sysctls, readOnlySysctls: true })))).toEqual([]);
  });

  test('programs that are not used are not spoken of', async () => {
    const text = JSON.stringify(await check('ipvs', fakeMachine({ modules: ['ip_vs'] })));
    expect(text).not.toMatch(/ipvsadm|ipset[ "]*(program|--version)/);
  });
});
