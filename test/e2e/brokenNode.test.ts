/** Nodes that are broken in one way each: one run of `doctor` names the cause, and what cures it. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { named } from './support/nftTable.ts';
import { ask, type Answered, cureOf, expectCauseAndCure } from './support/asked.ts';
import { whilePaused } from './support/paused.ts';
import { expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const WEB = '10.96.1.1';
const SERVICES: readonly ServiceWords[] = [
  { name: 'web', ip: WEB, ip6: 'fd00:96::1', nodePort: 30_080, pods: 'ac' },
  { name: 'api', ip: '10.96.1.2', pods: 'bd' },
];
const SILENCE_MS = 3000;

interface Broken {
  readonly flush: readonly string[];
  /** One rule or element of shop/web. */
  readonly deleteOne: (node: Host) => Promise<string>;
  readonly missing: RegExp;
}

const MODES: Readonly<Record<string, Broken>> = {
  iptables: {
    flush: ['iptables', '-t', 'nat', '-F'],
    deleteOne: async (node) => {
      const rules = (await node.run(['iptables', '-t', 'nat', '-S', 'KUBE-SERVICES'])).split('\n');
      const rule = rules.find((each) => each.includes(`-d ${WEB}/32`)) ?? '';
      return node.run(['sh', '-c', `iptables -t nat ${rule.replace(/^-A/, '-D')}`]);
    },
    missing: /missing: .*KUBE-S/,
  },
  nftables: {
    flush: ['nft', 'flush', 'ruleset'],
    deleteOne: async (node) =>
      node.run(['nft', await named(node, `delete element ip junction service-ips { ${WEB} }`)]),
    missing: /missing: .*service-ips/,
  },
};

describe.each(Object.entries(MODES))('a broken node, %s mode', (mode, broken) => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(
      node(),
      `--proxy-mode=${mode}`,
      // Otherwise nobody could break it.
      '--nftables-protection=backstop',
      '--conntrack-max-per-core=0',
      '--conntrack-min=0',
    );
    await made.write(manifests(SERVICES));
    await made.start();
    return made;
  });
  const doctor = (...args: readonly string[]): Promise<Answered> =>
    ask(node(), 'doctor', `--api-socket=${daemon().socket}`, ...args);
  /** Where the proxy does not answer, its inputs are the manifests. */
  const fromManifests = (...args: readonly string[]): Promise<Answered> =>
    doctor(
      ...args,
      '--manifests',
      daemon().manifests,
      `--proxy-mode=${mode}`,
      '--hostname-override=node1',
      '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
    );

  test('a node that is well has no problem', async () => {
    const answered = await doctor();
    expect(answered.text).toContain(`node1, ${mode} mode: no problem found.`);
    expect(answered.exitCode).toBe(0);
  });

  test('rules flushed, and a proxy that is stopped', async () => {
    await whilePaused(node(), daemon().log, async () => {
      await node().run(broken.flush);
      const answered = await fromManifests();
      expect(answered.exitCode).toBe(1);
      expectCauseAndCure(answered, {
        cause: /the IPv4 rules in the kernel are not those that are planned: \d+ missing/,
        cure: 'systemctl restart junction',
      });
      expectCauseAndCure(answered, {
        cause: 'Junction is stopped by a signal or a debugger',
        cure: /kill -CONT \d+/,
      });
      await node().run(['sh', '-c', cureOf(answered, 'Junction is stopped')]);
      await eventually(
        'no difference is left',
        async () => !(await fromManifests('--only=rules')).text.includes('are not those that are planned'),
      );
    });
  });

  test('one rule deleted', async () => {
    await whilePaused(node(), daemon().log, async () => {
      await broken.deleteOne(node());
      const answered = await fromManifests();
      expectCauseAndCure(answered, { cause: broken.missing, cure: 'systemctl restart junction' });
      expect(answered.text).toMatch(
        /packets to .*shop\/web.* go astray|the rules in the kernel are not those/,
      );
    });
    await expectAnswers(lab().host('client'), WEB, 'pod-a pod-c');
  });

  test.each([
    ['to an endpoint', ['-I', 'FORWARD', '-d', '10.244.1.11/32', '-j', 'DROP'], 'FORWARD'],
    ['to everything', ['-t', 'raw', '-I', 'PREROUTING', '-j', 'DROP'], 'PREROUTING'],
  ])('a DROP of another program before ours, %s', async (_, rule, chain) => {
    await node().run(['iptables', ...rule]);
    try {
      const answered = await doctor();
      expect(answered.exitCode).toBe(1);
      expect(answered.text).toMatch(
        new RegExp(`(?:a rule of another program|another program's rule).*${chain}`),
      );
      expect(answered.text).toMatch(/cure .*(?:iptables\S* -t \S+ -D|nft delete rule)/);
    } finally {
      await node().run(['iptables', ...rule.map((word) => (word === '-I' ? '-D' : word))]);
    }
  });

  // The rest is the same in every mode.
  if (mode !== 'iptables') return;

  test('the policy of FORWARD is DROP', async () => {
    await node().run(['iptables', '-P', 'FORWARD', 'DROP']);
    const answered = await doctor();
    expectCauseAndCure(answered, { cause: /FORWARD: policy drop/, cure: /policy accept|-P FORWARD ACCEPT/ });
    await node().run([
      'sh',
      '-c',
      cureOf(answered, 'forwarded packets are dropped unless').split(', or')[0] ?? '',
    ]);
    expect((await doctor('--only=firewall')).text).not.toContain('FORWARD: policy drop');
  });

  test('rp_filter drops clients whose answers leave elsewhere', async () => {
    const client = lab().host('client');
    const far = (): Promise<string> =>
      client
        .request('tcp', '192.168.100.2', 30_080, { source: '198.18.0.10', timeoutMs: SILENCE_MS })
        .then(({ outcome }) => outcome);
    expect(await far()).toBe('answer');
    await node().run(['ip', 'route', 'del', '198.18.0.0/24']);
    await node().run(['ip', 'route', 'replace', 'default', 'via', '192.168.100.3']);
    await node().sysctl({ 'net/ipv4/conf/eth1/rp_filter': '1' });
    try {
      expect(await far()).toBe('timeout');
      const answered = await doctor();
      expectCauseAndCure(answered, {
        cause: 'rp_filter drops packets of outside clients that arrive at eth1',
        cure: 'sysctl -w net.ipv4.conf.eth1.rp_filter=2',
      });
      expect(answered.text).toMatch(/[1-9]\d* packets dropped so far/);
      await node().run(['sh', '-c', cureOf(answered, 'rp_filter drops')]);
      expect((await doctor('--only=sysctls')).text).not.toContain('rp_filter drops');
    } finally {
      await node().sysctl({ 'net/ipv4/conf/eth1/rp_filter': '0' });
      await node().run(['ip', 'route', 'replace', 'default', 'via', '192.0.2.10', 'src', '192.168.100.2']);
      await node().run(['ip', 'route', 'add', '198.18.0.0/24', 'via', '192.0.2.10']);
    }
  });

  test('no route to the pods of another node', async () => {
    await node().run(['ip', 'route', 'replace', 'blackhole', '10.244.2.0/24']);
    try {
      expectCauseAndCure(await doctor(), {
        cause: 'ip route get 10.244.2.11: the route says blackhole',
        cure: 'the network plugin (CNI) writes these routes',
      });
    } finally {
      await node().run(['ip', 'route', 'replace', '10.244.2.0/24', 'via', '192.168.100.3']);
    }
  });

  test('forwarding is off', async () => {
    await node().sysctl({ 'net/ipv4/ip_forward': '0' });
    const answered = await doctor();
    expectCauseAndCure(answered, {
      cause: 'this node does not forward IPv4 packets',
      cure: 'sysctl -w net.ipv4.ip_forward=1',
    });
    await node().run(['sh', '-c', cureOf(answered, 'does not forward')]);
    expect((await doctor('--only=sysctls')).text).not.toContain('does not forward');
  });

  test('kube-proxy runs beside us', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'junction-kube-proxy-'));
    const program = join(folder, 'kube-proxy');
    await copyFile('/bin/sleep', program);
    const beside = node().spawn([program, '600']);
    try {
      let answered = await doctor();
      await eventually('its finding', async () => {
        if (answered.text.includes('kube-proxy runs on this node too')) return true;
        answered = await doctor();
        return false;
      });
      expectCauseAndCure(answered, {
        cause: /kube-proxy runs on this node too\n +evidence +pid \d+ \(\S+kube-proxy 600\)/,
        cure: 'kubectl label node node1 service-proxy=junction',
      });
    } finally {
      beside.kill('SIGKILL');
      await rm(folder, { recursive: true });
    }
  });

  test('no proxy runs', async () => {
    await daemon().end('SIGTERM');
    const answered = await doctor();
    expectCauseAndCure(answered, {
      cause: 'no Junction runs in this network namespace',
      cure: 'systemctl start junction',
    });
    await daemon().start();
    expect((await doctor()).exitCode).toBe(0);
  });
});
