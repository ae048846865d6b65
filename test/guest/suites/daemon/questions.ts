/** The local API of a daemon in IPVS mode: what it says of the kernel is read from the kernel. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PacketExplanation, ServiceRow } from '../../../../src/explain/types.ts';
import { manifests } from '../../../e2e/cluster.ts';
import { askFor } from '../../../e2e/support/ask.ts';
import { IPVS_FLAGS } from '../../daemon/guestDaemon.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage } from '../../daemon/stage.ts';

const API = '10.96.1.1';
const WORLD = manifests([{ name: 'api', ip: API, nodePort: 30_080, pods: 'ac' }]);

export const QUESTIONS = onStage('questions', {
  'a packet goes where the virtual servers in the kernel send it': async (stage) => {
    const folder = mkdtempSync(join(tmpdir(), 'junction-api-'));
    const socket = join(folder, 'a.sock');
    try {
      await stage.serve(WORLD, [...IPVS_FLAGS, `--api-socket=${socket}`]);
      const rows = await askFor<readonly ServiceRow[]>(socket, '/v1/services');
      same(
        rows.map(({ service, state }) => `${service} ${state}`),
        ['shop/api ok'],
      );
      const explained = async (): Promise<string> => {
        const [packet] = await askFor<readonly PacketExplanation[]>(
          socket,
          '/v1/explain?from=outside&to=svc/shop/api',
        );
        const { asPlanned, differences = [], notes = [] } = packet?.kernel ?? {};
        return `${packet?.verdict} ${asPlanned} ${[...differences, ...notes].join('; ')}`;
      };
      await becomes(explained, 'forwarded true ');
    } finally {
      await stage.daemon.end('SIGKILL');
      rmSync(folder, { recursive: true });
    }
  },
});
