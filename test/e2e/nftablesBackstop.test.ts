/** Somebody takes our rules away: open connections go on, new ones wait until the rules are back. */
import { describe, expect, test } from 'vitest';
import { type Host, REQUEST_TIMEOUT_MS } from '../../lab/host.ts';
import type { HostName } from '../../lab/topology.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { named, ourTables } from './support/nftTable.ts';
import { whilePaused } from './support/paused.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const WEB: ServiceWords = {
  name: 'web',
  ip: '10.96.1.1',
  ip6: 'fd00:96::1',
  nodePort: 30_080,
  extra: `  externalIPs: [198.51.100.200]
status: {loadBalancer: {ingress: [{ip: 203.0.113.5}]}}`,
  pods: 'abcd',
};
const DNS: ServiceWords = { name: 'dns', ip: '10.96.1.4', nodePort: 30_053, pods: 'ab' };
const MANIFESTS = [manifests([WEB]), manifests([DNS]).replaceAll('protocol: TCP', 'protocol: UDP')].join(
  '---\n',
);

const CLIENTS: readonly HostName[] = ['client', 'pod-b', 'node1'];
const WAYS = CLIENTS.flatMap((from) => [
  { from, address: '10.96.1.1', port: 80 },
  { from, address: 'fd00:96::1', port: 80 },
  { from, address: '198.51.100.200', port: 80 },
  { from, address: '203.0.113.5', port: 80 },
  { from, address: '192.168.100.2', port: 30_080 },
  { from, address: 'fd00:100::2', port: 30_080 },
]);
/** A first packet that was lost is sent again after one second, three, seven, fifteen and thirty-one. */
const PATIENT = { timeoutMs: 60_000 };

const lab = useLab();
const node = (): Host => lab().host('node1');
const nft = async (script: string): Promise<string> =>
  node().run(['nft', '-f', '-'], { stdin: await named(node(), script) });
const tables = (): Promise<string> => node().run(['nft', 'list', 'tables']);
/** Where silence is expected, or asked again: not for long. */
const SHORT_MS = 300;
const ask = async (
  address: string,
  port: number,
  sourcePort: number,
  timeoutMs = SHORT_MS,
): Promise<string> => {
  const options = { sourcePort, timeoutMs };
  return (await lab().host('client').request('udp', address, port, options)).outcome;
};

function useDaemon(...flags: readonly string[]): () => Daemon {
  return useInLab(async () => {
    const made = await Daemon.create(node(), '--proxy-mode=nftables', ...flags);
    await made.write(MANIFESTS);
    await made.start();
    return made;
  });
}

/** Every way that is open, or how it failed. */
async function dialAll(): Promise<readonly string[]> {
  const outcomes = await Promise.all(
    WAYS.map(({ from, address, port }) => lab().host(from).request('tcp', address, port, PATIENT)),
  );
  return outcomes.map(({ outcome }) => outcome);
}

describe('with a backstop', () => {
  const daemon = useDaemon('--nftables-protection=backstop');
  const ANSWERS = WAYS.map(() => 'answer');
  /** Each rebuild waits twice as long as the one before; another process begins anew. */
  async function restart(): Promise<void> {
    await daemon().end('SIGTERM');
    await daemon().start();
  }

  test('it is there, and nobody else can change it', async () => {
    for (const family of ['ip', 'ip6']) {
      expect(await tables()).toContain(`table ${family} junction-backstop\n`);
      for (const script of [
        `delete table ${family} junction-backstop`,
        `flush chain ${family} junction-backstop prerouting`,
        `add element ${family} junction-backstop ports { tcp . 1 }`,
      ]) {
        const { exitCode, stderr } = await node().exec(['nft', '-f', '-'], { stdin: script });
        expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Operation not permitted')]);
      }
    }
  });

  test.each([
    ['everything is flushed', 'flush ruleset'],
    ['our tables are deleted', 'delete table ip junction\ndelete table ip6 junction'],
    [
      'packets do not come to our rules',
      'flush chain ip junction prerouting\nflush chain ip junction output\nflush chain ip6 junction services',
    ],
    [
      'endpoints are not found',
      'flush chain ip junction any\nflush map ip6 junction any-4\nflush map ip junction ports-any-4',
    ],
    ['services are not found', 'flush set ip junction service-ips\nflush set ip6 junction service-ips'],
    [
      'nothing is masqueraded',
      'flush chain ip junction postrouting\ndelete chain ip junction postrouting\nflush chain ip6 junction postrouting',
    ],
  ])('%s, and stays so for a while', async (what, script) => {
    if (what === 'endpoints are not found') await restart();
    const whole = await ourTables(node());
    const sessions = await Promise.all(
      WAYS.map(({ from, address, port }) => lab().host(from).openSession(address, port)),
    );
    const use = async (): Promise<readonly string[]> =>
      (await Promise.all(sessions.map((session) => session.send()))).map(({ outcome }) => outcome);
    let dialled: Promise<readonly string[]> | undefined;
    await whilePaused(node(), daemon().log, async () => {
      await nft(script);
      expect(await use()).toEqual(ANSWERS);
      dialled = dialAll();
      expect(await use()).toEqual(ANSWERS);
    });
    expect(await dialled).toEqual(ANSWERS);
    await eventually('both tables', async () => (await ourTables(node())) === whole);
    expect(await use()).toEqual(ANSWERS);
    await Promise.all(sessions.map((session) => session.close()));
  });

  test('a flow of datagrams goes on, and a new one begins when the rules are back', async () => {
    await restart();
    const flow = { sourcePort: 40_101 };
    const old = () => lab().host('client').request('udp', '10.96.1.4', 80, flow);
    const first = await old();
    expect(first.outcome).toBe('answer');
    await whilePaused(node(), daemon().log, async () => {
      await nft('flush ruleset');
      expect(await old()).toMatchObject({ outcome: 'answer' });
      expect(await ask('10.96.1.4', 80, 40_102)).toBe('timeout');
      expect(await ask('192.168.100.2', 30_053, 40_103)).toBe('timeout');
    });
    await eventually('the address', async () => (await ask('10.96.1.4', 80, 40_102)) === 'answer');
    await eventually('the node port', async () => (await ask('192.168.100.2', 30_053, 40_103)) === 'answer');
  });

  test('what is no service’s is not held back', async () => {
    const serving = await node().serve([{ protocol: 'tcp', port: 30_099 }]);
    const dial = async (address: string, port: number): Promise<string> =>
      (await lab().host('client').request('tcp', address, port)).outcome;
    await whilePaused(node(), daemon().log, async () => {
      await nft('flush ruleset');
      expect(await dial('192.168.100.2', 30_099)).toBe('answer');
      expect(await dial('192.168.100.2', 30_098)).toBe('refused');
    });
    await serving.close();
  });

  test('services that come and go come and go here too', async () => {
    const listed = (): Promise<string> => node().run(['nft', 'list', 'table', 'ip', 'junction-backstop']);
    const more: ServiceWords = { name: 'more', ip: '10.96.1.9', nodePort: 30_090, pods: 'a' };
    await daemon().apply(`${MANIFESTS}---\n${manifests([more])}`);
    expect(await listed()).toMatch(/10\.96\.1\.9 \. tcp \. 80 [^]*30090/);
    await daemon().apply(`${MANIFESTS}---\n${manifests([{ ...more, pods: '' }])}`);
    expect(await listed()).not.toMatch(/10\.96\.1\.9|30090/);
    await daemon().apply(MANIFESTS);
    expect(await listed()).toContain('10.96.1.1 . tcp . 80 comment "');
  });

  test('another namespace takes all that is listed', async () => {
    const listed = await node().run(['nft', 'list', 'ruleset']);
    expect(listed).toContain('table ip junction-backstop {');
    const { exitCode, stderr } = await node().exec(['unshare', '--net', 'nft', '-f', '-'], { stdin: listed });
    expect([exitCode, stderr]).toEqual([0, '']);
  });

  test('it goes with the process, and comes with the next', async () => {
    await daemon().end('SIGKILL');
    await eventually('its end', async () => !(await tables()).includes('backstop'));
    expect(await tables()).toMatch(/table ip junction-[ab]\n/);
    await daemon().start();
    expect(await tables()).toContain('table ip junction-backstop\n');
  });
});

describe('without one', () => {
  const daemon = useDaemon('--nftables-protection=none');

  // The families start in any order.
  test('there is none', async () =>
    expect((await tables()).trim().split('\n').sort()).toEqual([
      expect.stringMatching(/^table ip junction-[ab]$/),
      expect.stringMatching(/^table ip6 junction-[ab]$/),
    ]));

  test('datagrams that were sent while the rules were gone do not go astray for ever', async () => {
    await eventually('the service', async () => (await ask('10.96.1.4', 80, 40_001)) === 'answer');
    await whilePaused(node(), daemon().log, async () => {
      await nft('flush ruleset');
      expect(await ask('192.168.100.2', 30_053, 40_002, REQUEST_TIMEOUT_MS)).toBe('refused');
      expect(await ask('10.96.1.4', 80, 40_003)).toBe('timeout');
    });
    await eventually('the node port', async () => (await ask('192.168.100.2', 30_053, 40_002)) === 'answer');
    await eventually('the address', async () => (await ask('10.96.1.4', 80, 40_003)) === 'answer');
  });
});
