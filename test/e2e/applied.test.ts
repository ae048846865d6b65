/** Who waits until everything is applied needs to wait for nothing else. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Status } from '../../src/explain/status.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { ApiNode } from './support/api/apiNode.ts';
import { applied } from './support/applied.ts';
import { ask, askFor } from './support/ask.ts';
import { eventually } from './support/eventually.ts';
import { runProgram } from './support/program.ts';
import { answerers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, nodeObject, objects } from './cluster.ts';

const API = { name: 'api', ip: '10.96.1.1', pods: 'ac' };
const WEB = { name: 'web', ip: '10.96.1.2', nodePort: 30_081, pods: 'bd' };

describe.each(['iptables', 'nftables'])('a proxy in %s mode', (mode) => {
  const lab = useLab();
  const node = useInLab(() => ApiNode.create(lab().host('node1'), [nodeObject(), ...objects([API])]));
  const status = (...flags: readonly string[]) =>
    runProgram(lab().host('node1'), 'status', `--api-socket=${node().socket}`, ...flags);

  test('that does not run is not waited for', async () => {
    const [plain, waiting] = [await status(), await status('--wait')];
    expect(waiting).toEqual(plain);
    expect(plain.exitCode).toBe(1);
  });

  test('is starting until its first rules are written', async () => {
    const { server } = node();
    await server.call('addFault', {
      on: ['stream', 'list'],
      resource: 'endpointslices',
      fault: { kind: 'hang' },
      times: 1000,
    });
    const program = await node().start(
      'certificate',
      `--proxy-mode=${mode}`,
      '--iptables-min-sync-period=2s',
    );
    await eventually('it answers', () => askFor(node().socket, '/v1/status').then(Boolean, () => false));
    const late = await status('--wait=100ms', '--output=json');
    const body = JSON.parse(late.stdout) as Status;
    expect([late.exitCode, body.state, body.wait?.isApplied]).toEqual([1, 'starting', false]);
    expect(body.wait?.open).toEqual(
      expect.arrayContaining([
        'not everything has been listed for the first time',
        'IPv4: the first rules are not written yet',
        'IPv6: the first rules are not written yet',
      ]),
    );
    const text = await status('--wait=100ms');
    expect(text.stdout).toMatch(/: starting\n *not applied +after .*:\n +.*listed/);
    expect([text.exitCode, (await status()).exitCode]).toEqual([1, 1]);
    expect(await answerers(lab().host('client'), API.ip, 80, 100)).not.toContain('pod');

    await server.call('clearFaults');
    await server.call('dropConnections');
    expect((await applied(node().socket)).state).not.toBe('starting');
    expect(program.log.match(/"Serving"/g)).toHaveLength(2);
    expect(await answerers(lab().host('client'), API.ip)).toBe('pod-a pod-c');
  });

  test('has written what was applied, when its turn has come', async () => {
    const [service, ...slices] = objects([WEB]);
    if (!service) throw new Error('no service');
    await node().put(...slices);
    const version = await node().put(service);
    const { wait } = await applied(node().socket, { service: 'shop/web', resourceVersion: String(version) });
    expect(wait).toMatchObject({ isApplied: true, open: [] });
    expect(await answerers(lab().host('client'), WEB.ip)).toBe('pod-b pod-d');

    await node().server.call('delete', 'Service', 'shop/web');
    const next = await node().put(...objects([{ ...API, pods: 'c' }]));
    const flags = ['--wait-for=svc/api', '--namespace=shop', `--resource-version=${next - 1}`];
    expect((await status(...flags)).exitCode).toBe(0);
    expect(await answerers(lab().host('client'), '192.168.100.2', WEB.nodePort)).toBe('refused');
  });

  test('says what does not come', async () => {
    const missing = await status('--wait=100ms', '--wait-for=svc/nobody', '--output=json');
    const { wait } = JSON.parse(missing.stdout) as Status;
    expect([missing.exitCode, wait?.open]).toEqual([
      1,
      ['Service default/nobody has not come from the API server'],
    ]);
    const newer = await ask(
      node().socket,
      '/v1/status?wait=applied&timeout=1ms&service=shop/api&resourceVersion=1000000',
    );
    expect(newer.status).toBe(504);
    expect(newer.text).toContain('shop/api is asked for at 1000000');
  });

  test.each([
    [['--wait=0s'], 'must be more than 0 and at most 10m'],
    [['--wait=soon'], 'must be a duration'],
    [['--wait', '--watch'], '--wait answers once'],
    [['--resource-version=7'], '--resource-version goes with --wait-for'],
    [['--wait-for=shop/web', '--resource-version=new'], 'must be a number'],
  ])('%s is refused', async (flags, reason) => {
    const { exitCode, stderr } = await status(...flags);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(reason)]);
  });
});

describe('what may never end', () => {
  const lab = useLab();

  test('is a warning: a port that is taken, a manifest that is broken', async () => {
    const node = lab().host('node1');
    const daemon = await Daemon.create(node, '--hold-ports');
    onTestFinished(() => daemon.close());
    const squatter = await node.serve([{ protocol: 'tcp', port: WEB.nodePort, address: '0.0.0.0' }]);
    onTestFinished(() => squatter.close());
    await daemon.write(manifests([API, WEB]));
    await daemon.start();
    await daemon.write(manifests([{ ...API, pods: 'c' }, WEB]).replace('port: 80,', 'port: 99999,'));
    const { wait } = await applied(daemon.socket, { service: 'shop/api' });
    expect(wait?.warnings.join('\n')).toMatch(
      /the manifests have 1 problem.*99999[^]*a port of services cannot be held/,
    );
    expect(await answerers(lab().host('client'), API.ip)).toBe('pod-c');
  });
});
