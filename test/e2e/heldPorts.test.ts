/** Ports that are held: nobody else gets them, and they serve all the same. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { Configured } from './support/configured.ts';
import { eventually } from './support/eventually.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { manifests } from './cluster.ts';

const PORT = 30_080;
const NODE = '192.168.100.2';
const WEB = { name: 'web', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: PORT, pods: 'ac' };

describe('held ports', () => {
  const lab = useLab();

  async function create(): Promise<Daemon> {
    const daemon = await Daemon.create(lab().host('node1'), '--hold-ports');
    onTestFinished(() => daemon.close());
    await daemon.write(manifests([WEB]));
    return daemon;
  }

  /** Whether another program could listen there: it tries. */
  async function isFree(node: Host, address: string): Promise<boolean> {
    try {
      await (await node.serve([{ protocol: 'tcp', port: PORT, address }])).close();
      return true;
    } catch (error) {
      expect(String(error)).toContain('EADDRINUSE');
      return false;
    }
  }

  test('nobody else can bind them while the daemon runs, and traffic reaches the pods', async () => {
    const node = lab().host('node1');
    const client = lab().host('client');
    const daemon = await create();
    expect(await isFree(node, '0.0.0.0')).toBe(true);
    await daemon.start();
    for (const address of ['0.0.0.0', NODE, '127.0.0.1', '::', 'fd00:100::2']) {
      expect(await isFree(node, address), `${address} is free`).toBe(false);
    }
    expect(await answerers(client, NODE, PORT)).toBe('pod-a pod-c');
    expect(await answerers(client, 'fd00:100::2', PORT)).toBe('pod-a pod-c');

    await daemon.apply(manifests([{ name: 'web', ip: '10.96.1.1', pods: 'ac' }]));
    expect(await isFree(node, NODE)).toBe(true);
    await daemon.apply(manifests([WEB]));
    expect(await isFree(node, NODE)).toBe(false);
    await daemon.end('SIGTERM');
    expect(await isFree(node, NODE)).toBe(true);
    expect(await answerers(client, NODE, PORT)).toBe('pod-a pod-c');
  });

  test('one that is taken is logged; the rules are written anyway', async () => {
    const node = lab().host('node1');
    const daemon = await create();
    const squatter = await node.serve([{ protocol: 'tcp', port: PORT, address: '0.0.0.0' }]);
    onTestFinished(() => squatter.close());
    await daemon.start();
    const taken = `${PORT}/TCP (IPv4), the node port of shop/web:http, is taken by another program`;
    expect(daemon.log).toContain(taken);
    expect(await answerers(lab().host('client'), NODE, PORT)).toBe('pod-a pod-c');
    await squatter.close();
    await eventually('it is held', () =>
      daemon.log.includes('(IPv4), the node port of shop/web:http, is held now'),
    );
    expect(await isFree(node, NODE)).toBe(false);
  });

  test('they move when node ports do', async () => {
    const node = lab().host('node1');
    const made = await Configured.create(node, [WEB]);
    onTestFinished(() => made.close());
    await made.write();
    await made.start('--hold-ports');
    expect(await isFree(node, '192.0.2.1')).toBe(false);
    await made.write({ nodePortAddresses: [`${NODE}/32`] });
    await expectAnswers(lab().host('client'), '192.0.2.1', 'refused', PORT);
    await eventually('the other address is free', () => isFree(node, '192.0.2.1'));
    await eventually('this one is held', async () => !(await isFree(node, NODE)));
  });
});
