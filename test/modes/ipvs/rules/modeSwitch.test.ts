/**
 * A node that is switched between the iptables and the ipvs mode, in memory: after every single write a service's address
 * is forwarded by one of the two, and open connections keep what they need.
 */
import { describe, expect, test } from 'vitest';
import { type Retired, retireServers } from '../../../../src/modes/ipvs/rules/resync.ts';
import { Harness as IptablesHarness } from '../../iptables/rules/harness.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';
import { Harness, NODE_IPS } from './harness.ts';

const SERVICES = Array.from({ length: 20 }, (_, n) => [
  `a/s${n} LoadBalancer 10.96.0.${n + 1} 80@${30_080 + n} lb=203.0.113.${n + 1} ranges=9.9.9.0/24`,
  `a/s${n}-1 of s${n} 80 | 10.244.0.${n + 1} node-a | 10.244.1.${n + 1} node-b`,
]).flat();
const ADDRESSES = Array.from({ length: 20 }, (_, n) => `10.96.0.${n + 1}`);

function isTranslated(kernel: FakeIpvsKernel, address: string): boolean {
  return kernel.iptables
    .rulesOf('nat', 'KUBE-SERVICES')
    .some((rule) => rule.includes(`-d ${address} `) && rule.includes('-j KUBE-SVC-'));
}

function isBalanced(kernel: FakeIpvsKernel, address: string): boolean {
  const isBound = [...(kernel.device?.addresses ?? [])].some((ip) => ip === address);
  return isBound && (kernel.servers.get(`TCP ${address}:80`)?.destinations.size ?? 0) > 0;
}

async function inIptablesMode(): Promise<FakeIpvsKernel> {
  const kernel = new FakeIpvsKernel();
  await new IptablesHarness({ kernel: kernel.iptables }).sync(...SERVICES);
  return kernel;
}

describe('from iptables to ipvs', () => {
  test('every address is forwarded after every write', async () => {
    const kernel = await inIptablesMode();
    const silent = new Set<string>();
    const look = (): void => {
      for (const address of ADDRESSES)
        if (!isTranslated(kernel, address) && !isBalanced(kernel, address)) silent.add(address);
    };
    kernel.before = look;
    kernel.iptables.watch = look;
    await new Harness({ kernel }).sync(...SERVICES);
    look();
    expect([...silent]).toEqual([]);
    expect(ADDRESSES.filter((address) => isTranslated(kernel, address))).toEqual([]);
  });

  test('the old chains go in few restores, none of which the kernel refuses', async () => {
    const kernel = await inIptablesMode();
    kernel.iptables.chainsPerRestore = Number.POSITIVE_INFINITY; // as in the legacy variant
    await new Harness({ kernel }).sync(...SERVICES);
    const { attempts, restores } = kernel.iptables;
    expect(attempts.length).toBe(restores.length);
    expect(restores.length).toBeLessThanOrEqual(12);
    expect(kernel.iptables.chains('nat').filter((chain) => /-(?:SVC|SEP|EXT|FW)-/.test(chain))).toEqual([]);
  });

  test('without old rules addresses come last, as ever', async () => {
    const harness = new Harness();
    await harness.sync(...SERVICES);
    const { sent } = harness.kernel;
    expect(sent.findIndex((line) => line.startsWith('addr add'))).toBeGreaterThan(sent.lastIndexOf('rules'));
  });
});

test('from ipvs to iptables: an endpoint that dials itself is masqueraded after every write, by one mode or the other', async () => {
  const harness = new Harness();
  await harness.sync(...SERVICES);
  const { iptables } = harness.kernel;
  const halves: string[] = [];
  iptables.watch = () => {
    const isOld = iptables.rulesOf('nat', 'KUBE-POSTROUTING').some((rule) => rule.includes('KUBE-LOOP-BACK'));
    const isNew = ADDRESSES.every((address) => isTranslated(harness.kernel, address));
    if (isOld === isNew) halves.push(iptables.text);
  };
  await new IptablesHarness({ kernel: iptables }).sync(...SERVICES);
  expect(iptables.restores.length).toBeGreaterThan(2);
  expect(halves).toEqual([]);
});

describe('from ipvs to another mode', () => {
  const HELD = 'TCP 10.96.0.3:80';
  const retire = (kernel: FakeIpvsKernel, isOverdue = false): Promise<Retired> =>
    retireServers(kernel, { family: 'IPv4', nodeIps: new Set<string>(NODE_IPS), isOverdue });

  async function withConnection(server = HELD): Promise<FakeIpvsKernel> {
    const harness = new Harness();
    await harness.sync(...SERVICES);
    const { kernel } = harness;
    kernel.destination(server, '10.244.0.3:80').connections = 2;
    await new IptablesHarness({ kernel: kernel.iptables }).sync(...SERVICES);
    return kernel;
  }

  test('a virtual server with connections stays, with its address and without weight; all others go', async () => {
    const kernel = await withConnection();
    const retired = await retire(kernel);
    expect(retired).toMatchObject({ keptServers: 1, connections: 2, failures: [] });
    expect([...kernel.servers.keys()]).toEqual([HELD]);
    expect([...(kernel.device?.addresses ?? [])]).toEqual(['10.96.0.3']);
    const weights = [...(kernel.servers.get(HELD)?.destinations.values() ?? [])].map(({ weight }) => weight);
    expect(weights).toEqual([0, 0]);
  });

  test('looking again changes nothing; when the connections have ended, all of it goes', async () => {
    const kernel = await withConnection();
    await retire(kernel);
    kernel.forget();
    await retire(kernel);
    expect(kernel.sent).toEqual([]);
    kernel.destination(HELD, '10.244.0.3:80').connections = 0;
    expect(await retire(kernel)).toMatchObject({ servers: 1, addresses: 1, keptServers: 0 });
    expect(kernel.servers.size).toBe(0);
  });

  test('a node port is known by its set, and waits as well', async () => {
    const kernel = await withConnection('TCP 192.0.2.10:30082');
    await retire(kernel);
    expect([...kernel.servers.keys()]).toEqual(['TCP 192.0.2.10:30082']);
    expect([...(kernel.device?.addresses ?? [])]).toEqual([]);
    await retire(kernel);
    expect(kernel.servers.size).toBe(1);
  });

  test('with a limit, connections do not count when it is over', async () => {
    const kernel = await withConnection();
    expect(await retire(kernel, true)).toMatchObject({ keptServers: 0, failures: [] });
    expect(kernel.servers.size).toBe(0);
  });

  test('flows of UDP are not waited for', async () => {
    const harness = new Harness();
    await harness.sync('a/dns 10.96.0.53 53/udp', 'a/dns-1 of dns 53/udp | 10.244.0.53 node-a');
    const { kernel } = harness;
    kernel.destination('UDP 10.96.0.53:53', '10.244.0.53:53').connections = 9;
    expect(await retire(kernel)).toMatchObject({ servers: 1, keptServers: 0 });
  });

  test('virtual servers of others stay', async () => {
    const kernel = await withConnection();
    const attributes = { scheduler: 'rr', flags: 0, timeout: 0, clientPrefix: 32 };
    const server = { protocol: 'TCP', ip: '198.51.100.77' as never, port: 99, ...attributes } as const;
    kernel.tamper({ kind: 'newServer', server });
    await retire(kernel, true);
    expect([...kernel.servers.keys()]).toEqual(['TCP 198.51.100.77:99']);
  });

  test('and back before they have ended: the weights return', async () => {
    const kernel = await withConnection();
    await retire(kernel);
    await new Harness({ kernel }).sync(...SERVICES);
    const weights = [...(kernel.servers.get(HELD)?.destinations.values() ?? [])].map(({ weight }) => weight);
    expect(weights).toEqual([1, 1]);
    expect(ADDRESSES.filter((address) => !isBalanced(kernel, address))).toEqual([]);
  });
});
