/** `junction ui` beside a running daemon that changes and restarts, and on a bundle of it. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { PacketExplanation } from '../../src/explain/types.ts';
import { UiProgram } from '../cli/uiProgram.ts';
import { useLab } from '../lab/requireLab.ts';
import { manifests } from './cluster.ts';
import { Daemon } from './daemon.ts';
import { runProgram } from './support/program.ts';
import { useInLab } from './support/use.ts';

const IP = '10.96.1.1';
const withPods = (pods: string): string => manifests([{ name: 'api', ip: IP, pods }]);
const WALK = `/v1/explain?from=10.244.1.12&to=${IP}:80`;

const mode = 'nftables';

describe('junction ui', () => {
  const lab = useLab();
  const running = useInLab(async () => {
    const daemon = await Daemon.create(lab().host('node1'), `--proxy-mode=${mode}`);
    await daemon.write(withPods('ac'));
    await daemon.start();
    return daemon;
  });

  test('the daemon changes, ends and comes back; the page goes on', async () => {
    const daemon = running();
    // In the machine's own network: the socket is all that they share.
    const ui = await UiProgram.serving([`--api-socket=${daemon.socket}`]);
    expect(await ui.json('/v1/status')).toMatchObject({ node: 'node1', mode });
    expect(await ui.json('/v1/doctor')).toMatchObject({ error: { code: 'no-machine' } });
    expect(await ui.json(WALK)).toMatchObject([{ verdict: 'forwarded', kernel: { mode, asPlanned: true } }]);

    const events = await ui.watch();
    await daemon.write(withPods('acd'));
    expect(await next(events, 'change')).toMatchObject({
      service: 'shop/api',
      committedAt: expect.any(Number),
    });
    expect(endpointsOf(await ui.json(WALK))).toContain('10.244.2.12:8080');

    await daemon.end('SIGKILL');
    await expect(next(events, 'none')).rejects.toThrow('terminated');
    const away = await ui.ask('/v1/status');
    expect([away.status, await away.json()]).toMatchObject([
      503,
      { error: { code: 'LOCAL_API_UNREACHABLE' } },
    ]);
    await daemon.start();
    expect(await ui.json(WALK)).toMatchObject([{ kernel: { asPlanned: true } }]);
    const again = await ui.watch();
    await daemon.write(withPods('ac'));
    expect(await next(again, 'change')).toMatchObject({ service: 'shop/api' });
    expect(ui.err).toBe('');
  });

  test('a bundle has what the page needs: the walk through the kernel, changes, status, doctor', async () => {
    const daemon = running();
    const path = join(daemon.manifests, `${mode}.json.gz`);
    const written = await runProgram(
      lab().host('node1'),
      'bundle',
      `--api-socket=${daemon.socket}`,
      '--output',
      path,
    );
    expect(written).toMatchObject({ exitCode: 0 });
    const ui = await UiProgram.serving([path]);
    const walks = (await ui.json(WALK)) as readonly PacketExplanation[];
    expect(walks).toMatchObject([{ verdict: 'forwarded', kernel: { mode, asPlanned: true } }]);
    expect(walks[0]?.kernel?.outcomes[0]?.steps.length).toBeGreaterThan(1);
    expect(await ui.json('/v1/status')).toMatchObject({
      node: 'node1',
      mode,
      answeredBy: { kind: 'bundle' },
    });
    expect(await ui.json('/v1/history')).toMatchObject([{ service: 'shop/api' }]);
    expect(JSON.stringify(await ui.json('/v1/events?kind=sync'))).toContain('"sync":"full"');
    expect(await ui.json('/v1/doctor')).toMatchObject({ node: 'node1', mode });
    expect((await ui.ask('/v1/watch?format=events')).headers.get('x-junction-events')).toBe('none');
  });
});

/** The next of that kind. Throws when the stream ends. */
async function next(events: AsyncGenerator<Record<string, unknown>>, kind: string): Promise<unknown> {
  for (;;) {
    const { value, done } = await events.next();
    if (done) throw new Error('the stream has ended');
    if (value['kind'] === kind) return value;
  }
}

function endpointsOf(packets: unknown): readonly string[] {
  return (packets as readonly PacketExplanation[]).flatMap(({ endpoints }) =>
    endpoints.map(({ address }) => address),
  );
}
