import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { generateCluster } from '../../support/apiServer/index.ts';
import { startHarness } from './harness.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const MEBIBYTE = 1024 * 1024;

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

it.each([{ streamsLists: true }, { streamsLists: false }])(
  'of large objects only what is needed is held (streams lists: $streamsLists)',
  async ({ streamsLists }) => {
    const count = 1000;
    const endpoints = 3;
    const harness = await startHarness({ streamsLists });
    const { server } = harness;
    await harness.settled();
    const objects = generateCluster({
      services: count,
      endpointsPerService: endpoints,
      managedFieldsBytes: 50_000,
    });
    const held = (): number => harness.world.size;
    // The server's copies are buffers, which are not in the heap.
    for (const raw of objects) if (raw.kind === 'EndpointSlice') server.store.put(raw);
    server.dropConnections();
    server.compact();
    const before = heapUsed();
    await harness.until('all is there', () => held() === count);
    const after = heapUsed();
    // 50 MB came in. What is left must be below a tenth of that.
    expect((after - before) / MEBIBYTE).toBeLessThan(5);
  },
);
