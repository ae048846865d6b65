import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { ourRules } from './support/rules.ts';
import { answerers, SOON_MS } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const API = '10.96.1.1';
const WEB = '10.96.1.2';

describe('a running daemon', () => {
  const lab = useLab();
  const running = useInLab(async () => {
    const daemon = await Daemon.create(lab().host('node1'));
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

    await running().write(manifests([{ name: 'api', ip: API, pods: `${kept}d` }]));
    await eventually(
      'the new endpoint',
      async () => (await answerers(pod, API, 80, SOON_MS)) === `pod-${kept} pod-d`,
    );
    expect(await session.send()).toEqual(first);

    await running().write(manifests([{ name: 'api', ip: API, pods: '' }]));
    await eventually('nobody', async () => (await answerers(pod, API, 80, SOON_MS)) === 'refused');
    expect(await session.send()).toEqual(first);
    await session.close();

    await running().write(manifests([{ name: 'api', ip: API, pods: 'b' }]));
    await eventually('somebody again', async () => (await answerers(pod, API, 80, SOON_MS)) === 'pod-b');
  });

  test('serves services that are added, and forgets those that are deleted', async () => {
    const client = lab().host('client');
    const api = { name: 'api', ip: API, pods: 'ac' };
    await running().write(manifests([api, { name: 'web', ip: WEB, nodePort: 30081, pods: 'bd' }]));
    await eventually(
      'the new service',
      async () => (await answerers(client, WEB, 80, SOON_MS)) === 'pod-b pod-d',
    );
    expect(await answerers(client, '192.168.100.2', 30081)).toBe('pod-b pod-d');

    await running().write(manifests([api]));
    await eventually('its end', async () => !(await answerers(client, WEB, 80, SOON_MS)).includes('pod'));
    expect(await answerers(client, '192.168.100.2', 30081)).toBe('refused');
    expect(await answerers(client, API)).toBe('pod-a pod-c');
    const rules = await lab().host('node1').run(['iptables-save']);
    expect(rules).not.toContain('shop/web');
  });

  test('a manifest that breaks is reported, and what it said before stays in force', async () => {
    const good = manifests([{ name: 'api', ip: API, pods: 'ac' }]);
    await running().write(good.replace('port: 80,', 'port: 99999,'));
    await eventually('the report', () => running().log.includes('port 99999 is out of range'));
    expect(running().log).toMatch(/cluster\.yaml:\d+: error: Service shop\/api: spec\.ports\[0\]\.port/);
    expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-c');
    await running().write(good);
  });

  test('a stop leaves the rules, a start finds them, and kill -9 breaks nothing', async () => {
    const client = lab().host('client');
    const node = lab().host('node1');
    await running().write(manifests([{ name: 'api', ip: API, nodePort: 30080, pods: 'ac' }]));
    await eventually(
      'the node port',
      async () => (await answerers(client, '192.168.100.2', 30080)) === 'pod-a pod-c',
    );
    const session = await client.openSession(API, 80);
    const before = await ourRules(node);

    expect(await running().end('SIGTERM')).toBe(0);
    expect(await ourRules(node)).toBe(before);
    expect(await answerers(client, API)).toBe('pod-a pod-c');

    await running().start();
    expect(await ourRules(node)).toBe(before);
    expect(running().log.slice(running().log.lastIndexOf('Starting'))).toMatch(
      /"Serving" ipFamily="IPv4".*objectsWritten=0/,
    );

    await running().end('SIGKILL');
    expect(await answerers(client, API)).toBe('pod-a pod-c');
    await running().start();
    expect(await ourRules(node)).toBe(before);
    expect((await session.send()).outcome).toBe('answer');
    await session.close();
  });
});
