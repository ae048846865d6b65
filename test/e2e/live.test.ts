import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { MODES } from './support/modes.ts';
import { answerers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const API = '10.96.1.1';
const WEB = '10.96.1.2';
const NODE = '192.168.100.2';

describe.each(MODES)('a running daemon, $mode', ({ mode, written }) => {
  const lab = useLab();
  const running = useInLab(async () => {
    const daemon = await Daemon.create(lab().host('node1'), `--proxy-mode=${mode}`);
    await daemon.write(manifests([{ name: 'api', ip: API, pods: 'ac' }]));
    await daemon.start();
    return daemon;
  });

  test('moves traffic when endpoints come and go, and open connections to kept ones live on', async () => {
    const pod = lab().host('pod-b');
    expect(await answerers(pod, API)).toBe('pod-a pod-c');
    const session = await pod.openSession(API, 80);
    const first = await session.send();
    if (first.outcome !== 'answer') throw new Error('no answer');
    const kept = first.reply.host === 'pod-a' ? 'a' : 'c';
    for (const [pods, answering] of [
      [`${kept}d`, `pod-${kept} pod-d`],
      ['', 'refused'],
      ['b', 'pod-b'],
    ] as const) {
      await running().apply(manifests([{ name: 'api', ip: API, pods }]));
      expect(await answerers(pod, API)).toBe(answering);
      expect(await session.send()).toEqual(first);
    }
    await session.close();
  });

  test('serves services that are added, and forgets those that are deleted', async () => {
    const client = lab().host('client');
    const api = { name: 'api', ip: API, pods: 'ac' };
    await running().apply(manifests([api, { name: 'web', ip: WEB, nodePort: 30_081, pods: 'bd' }]));
    expect(await answerers(client, WEB)).toBe('pod-b pod-d');
    expect(await answerers(client, NODE, 30_081)).toBe('pod-b pod-d');

    await running().apply(manifests([api]));
    expect(await answerers(client, NODE, 30_081)).toBe('refused');
    expect(await answerers(client, API)).toBe('pod-a pod-c');
    const rules = await written(lab().host('node1'));
    expect(rules).not.toContain('shop/web');
    expect(rules).not.toContain(`${WEB} `);
  });

  test('a manifest that breaks is reported, and what it said before stays in force', async () => {
    const good = manifests([{ name: 'api', ip: API, pods: 'ac' }]);
    const { wait } = await running().apply(good.replace('port: 80,', 'port: 99999,'));
    const problem = /cluster\.yaml.*Service shop\/api.*port 99999 is out of range/;
    expect([running().log, wait?.warnings.join()]).toEqual([
      expect.stringMatching(problem),
      expect.stringMatching(problem),
    ]);
    expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-c');
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    '%s leaves the rules, and a start finds them',
    async (signal) => {
      const client = lab().host('client');
      const node = lab().host('node1');
      await running().apply(manifests([{ name: 'api', ip: API, nodePort: 30_080, pods: 'ac' }]));
      const session = await client.openSession(API, 80);
      const before = await written(node);
      await running().end(signal);
      expect([await written(node), await answerers(client, API)]).toEqual([before, 'pod-a pod-c']);
      await running().start();
      expect([await written(node), await answerers(client, NODE, 30_080)]).toEqual([before, 'pod-a pod-c']);
      expect((await session.send()).outcome).toBe('answer');
      await session.close();
    },
  );
});
