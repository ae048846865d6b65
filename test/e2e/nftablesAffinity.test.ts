/** Clients that a service remembers, in the nftables mode: with whom they stay, for how long, and when they may not. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { addressOf, type HostName } from '../../lab/topology.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { named } from './support/nftTable.ts';
import { whilePaused } from './support/paused.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const WEB = { name: 'web', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080 };

/** Where the service answers. */
interface Dialled {
  readonly address: string;
  readonly port: number;
}

const ADDRESS: Dialled = { address: WEB.ip, port: 80 };
const ADDRESS_6: Dialled = { address: WEB.ip6, port: 80 };
const NODE_PORT: Dialled = { address: '192.168.100.2', port: WEB.nodePort };
const NODE_PORT_6: Dialled = { address: 'fd00:100::2', port: WEB.nodePort };
const FRONTENDS = [ADDRESS, ADDRESS_6, NODE_PORT, NODE_PORT_6];

/** With the number of the address that it sends from. Pods of node2 would be answered past node1, and not understand. */
const CLIENTS: readonly (readonly [HostName, number])[] = [
  ['client', 0],
  ['client', 1],
  ['pod-a', 0],
  ['pod-b', 0],
  ['node1', 0],
  ['node2', 0],
];
const LONG = 10_800;
/** A busy machine may not come back in time for a short time-out: then a longer one is tried. */
const TRIED_SECONDS = [2, 20, 60];
const TOO_SLOW = 'no connections were made within the time-out';

function isOver(since: number, seconds: number): boolean {
  return performance.now() - since > seconds * 1000;
}

function sticky(pods: string, seconds = LONG): ServiceWords {
  const extra = `  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: ${seconds}}}`;
  return { ...WEB, pods, extra };
}

describe('clients that a service remembers', () => {
  const lab = useLab();
  const daemon = useInLab(async () => {
    const made = await Daemon.create(
      lab().host('node1'),
      '--proxy-mode=nftables',
      '--nftables-protection=backstop',
    );
    await made.write(manifests([]));
    await made.start();
    return made;
  });

  async function ask(from: HostName, { address, port }: Dialled, index = 0): Promise<string> {
    const source = addressOf(from, address.includes(':') ? 'IPv6' : 'IPv4', index);
    const answer = await lab().host(from).request('tcp', address, port, { source });
    return answer.outcome === 'answer' ? answer.reply.host : answer.outcome;
  }

  /** Who answers each client at each frontend, asked several times. */
  async function assignments(frontends: readonly Dialled[]): Promise<ReadonlyMap<string, string>> {
    const pairs = frontends.flatMap((frontend) => CLIENTS.map((client) => [frontend, ...client] as const));
    const seen = await Promise.all(
      pairs.map(async ([frontend, client, index]) => {
        const first = await ask(client, frontend, index);
        const others = await Promise.all([1, 2, 3].map(() => ask(client, frontend, index)));
        return [
          `${client} ${index} ${frontend.address}`,
          [...new Set([first, ...others])].join(' '),
        ] as const;
      }),
    );
    return new Map(seen);
  }

  /** Over more than the time-out in all, for who first came then. False: a round was too slow to prove anything. */
  async function areKept(
    before: ReadonlyMap<string, string>,
    since: number,
    seconds: number,
  ): Promise<boolean> {
    let last = since;
    for (let round = 0; round < 2; round++) {
      await sleep(seconds * 600);
      const asked = performance.now();
      const now = await assignments([ADDRESS]);
      if (isOver(last, seconds)) return false;
      expect(now).toEqual(before);
      last = asked;
    }
    return true;
  }

  async function serve(...services: readonly ServiceWords[]): Promise<void> {
    await daemon().apply(manifests(services));
  }

  /** Who had a gone one has one of those that are left; everybody else has the same as before. */
  function expectMoved(
    before: ReadonlyMap<string, string>,
    after: ReadonlyMap<string, string>,
    pods: string,
  ): void {
    const names = new Set([...pods].map((pod) => `pod-${pod}`));
    for (const [who, host] of before) {
      const now = after.get(who) ?? '';
      if (names.has(host)) expect([who, now]).toEqual([who, host]);
      else expect(names, `${who} had ${host}, and now ${now}`).toContain(now);
    }
  }

  test('stay with their endpoint while the pool changes, and leave it when it is gone', async () => {
    await serve(sticky('abc'));
    const first = await assignments(FRONTENDS);
    expect([...first.values()].every((host) => /^pod-[abc]$/.test(host))).toBe(true);

    await serve(sticky('abcd'));
    expect(await assignments(FRONTENDS)).toEqual(first);
    await serve(sticky('abd'));
    const second = await assignments(FRONTENDS);
    expectMoved(first, second, 'abd');
    await serve(sticky('d'));
    expectMoved(second, await assignments(FRONTENDS), 'd');
    await serve(sticky('abcd'));
    expect(new Set((await assignments(FRONTENDS)).values())).toEqual(new Set(['pod-d']));
    await serve(sticky(''));
    expect(new Set((await assignments([ADDRESS])).values())).toEqual(new Set(['refused']));
  });

  test('stay over kill -9 and a restart, but not with an endpoint that went meanwhile', async () => {
    await serve(sticky('abcd'));
    const before = await assignments(FRONTENDS);
    expect(new Set(before.values()).size).toBeGreaterThan(1);
    await daemon().end('SIGKILL');
    expect(await assignments(FRONTENDS)).toEqual(before);
    await daemon().start();
    expect(await assignments(FRONTENDS)).toEqual(before);

    const gone = before.get('client 0 10.96.1.1')?.at(-1) ?? '';
    const left = [...'abcd'].filter((pod) => pod !== gone).join('');
    await daemon().end('SIGKILL');
    await daemon().write(manifests([sticky(left)]));
    await daemon().start();
    const after = await assignments(FRONTENDS);
    expectMoved(before, after, left);
    expect(await assignments(FRONTENDS)).toEqual(after);
  });

  test('are forgotten after the time-out of the service, counted from their last connection', async () => {
    for (const seconds of TRIED_SECONDS) {
      await serve(sticky('abcd', seconds));
      const began = performance.now();
      const before = await assignments([ADDRESS]);
      if (!(await areKept(before, began, seconds))) continue;
      await sleep(seconds * 1000 + 300);
      // All six the same again by chance: one in four thousand. Then once more.
      let after = await assignments([ADDRESS]);
      if (isSame(after, before)) {
        await sleep(seconds * 1000 + 300);
        after = await assignments([ADDRESS]);
      }
      expect(after).not.toEqual(before);
      return;
    }
    expect.fail(TOO_SLOW);
  });

  test('keep their endpoint when the time-out changes, and are then forgotten after the new one', async () => {
    for (const seconds of TRIED_SECONDS) {
      await serve(sticky('abcd', LONG));
      const before = await assignments(FRONTENDS);
      const changed = performance.now();
      await serve(sticky('abcd', seconds));
      const after = await assignments(FRONTENDS);
      if (isOver(changed, seconds)) continue;
      expect(after).toEqual(before);
      await sleep(seconds * 1000 + 300);
      expect(await assignments(FRONTENDS)).not.toEqual(before);
      return;
    }
    expect.fail(TOO_SLOW);
  });

  test('go elsewhere when they may not be sent to other nodes any more', async () => {
    const local = (pods: string): ServiceWords => {
      const { extra = '', ...words } = sticky(pods);
      return { ...words, extra: `${extra}\n  externalTrafficPolicy: Local` };
    };
    await serve(sticky('c'));
    expect(new Set((await assignments(FRONTENDS)).values())).toEqual(new Set(['pod-c']));
    await serve(local('ac'));
    const after = await assignments(FRONTENDS);
    // From outside to a node port: here only. To the cluster IP, or from pods and the node: as before.
    for (const [who, host] of after) {
      const isOutside = /^(client|node2) .* (192\.168|fd00:100:)/.test(who);
      expect([who, host]).toEqual([who, isOutside ? 'pod-a' : 'pod-c']);
    }
  });

  test('who came by while rules were missing is not remembered', async () => {
    await serve(sticky('abcd'));
    const node = lab().host('node1');
    await whilePaused(node, daemon().log, async () => {
      await node.run(['nft', await named(node, 'flush chain ip junction prerouting')]);
      const { outcome } = await lab().host('client').request('tcp', WEB.ip, 80, { timeoutMs: 500 });
      expect(outcome).toBe('timeout');
    });
    await daemon().applied();
    expect(await ask('client', ADDRESS)).toMatch(/^pod-/);
  });

  test('time-outs and pool sizes that no service has any more leave the table', async () => {
    const node = lab().host('node1');
    const list = async (): Promise<string> => node.run(['nft', await named(node, 'list table ip junction')]);
    await serve(sticky('abcd', 77));
    expect(await list()).toMatch(/map any-4 [^]*chain sticky-tcp-77 /);
    await serve(sticky('ab', 99));
    await eventually('their end', async () => !/any-4 |sticky-tcp-77|affinity-udp/.test(await list()));
    expect(await list()).toMatch(/map any-2 [^]*chain sticky-tcp-99 /);
    expect(await ask('client', ADDRESS)).toMatch(/^pod-[ab]$/);
  });
});

function isSame(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return [...a].every(([key, value]) => b.get(key) === value);
}
