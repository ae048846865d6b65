/** `doctor --probe`: real connections, and which leg fails. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { ask, type Answered } from './support/asked.ts';
import { useInLab } from './support/use.ts';
import { manifests, nodeObject } from './cluster.ts';

const MANIFESTS = [
  `${JSON.stringify(nodeObject())}\n`,
  manifests([
    { name: 'web', ip: '10.96.4.1', nodePort: 30_091, pods: 'ac' },
    { name: 'gone', ip: '10.96.4.3', pods: 'ab' },
  ]).replaceAll('10.244.1.12', '10.244.1.99'),
  // Pods listen on 8080, and not on this one.
  manifests([{ name: 'wrong', ip: '10.96.4.2', pods: 'ac' }]).replaceAll('8080', '8089'),
].join('---\n');

describe('probes', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node(), '--proxy-mode=nftables');
    await made.write(MANIFESTS);
    await made.start();
    return made;
  });
  const probe = (...args: readonly string[]): Promise<Answered> =>
    ask(node(), 'doctor', `--api-socket=${daemon().socket}`, '--probe', ...args);

  test('endpoints and frontends answer', async () => {
    const { text } = await probe('shop/web', '--output', 'wide');
    expect(text).toContain('shop/web:http/TCP (IPv4): 2 endpoints and 2 frontends answer');
    expect(text).not.toContain('shop/wrong:http/TCP (IPv4)');
  });

  test('a target port at which nothing listens', async () => {
    const { text, exitCode } = await probe('shop/wrong');
    expect(text).toContain(
      'shop/wrong:http/TCP (IPv4): 10.244.1.11:8089, 10.244.2.11:8089 refuse directly: nothing listens at the target port',
    );
    expect(text).toMatch(/cure .*compare targetPort of the Service with the port that they listen on/);
    expect(exitCode).toBe(1);
  });

  test('an endpoint whose pod is gone', async () => {
    const { text } = await probe('shop/gone');
    expect(text).toContain('10.244.1.99:8080 do not answer directly: the network or the pod');
    expect(text).toContain('endpoints: 10.244.1.11:8080 answered, 10.244.1.99:8080');
    expect(text).toContain('ip route get 10.244.1.99');
  });

  test('a frontend that a rule of another program drops', async () => {
    const rule = ['OUTPUT', '-d', '10.96.4.1', '-j', 'DROP'];
    await node().run(['iptables', '-t', 'raw', '-I', ...rule]);
    try {
      const { text } = await probe('shop/web');
      expect(text).toContain(
        'shop/web:http/TCP (IPv4): its endpoints answer directly, 10.96.4.1:80 not: the rules',
      );
      expect(text).toContain('junction explain --from node --to 10.96.4.1:80');
      const explained = await ask(
        node(),
        'explain',
        `--api-socket=${daemon().socket}`,
        '--from',
        'node',
        '--to',
        '10.96.4.1:80',
      );
      expect(explained.exitCode).toBe(5);
      expect(explained.text).toMatch(/another program.*raw OUTPUT|raw OUTPUT.*another program/s);
      expect(explained.text).toMatch(/cure .*(?:iptables -t raw -D OUTPUT|nft delete rule ip raw OUTPUT)/);
    } finally {
      await node().run(['iptables', '-t', 'raw', '-D', ...rule]);
    }
  });
});
