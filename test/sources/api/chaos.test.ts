/** Everything that can go wrong, in any order, while the cluster changes. At the end the worlds are the same. */
import { expect, it } from 'vitest';
import {
  type Fault,
  StatusError,
  type StreamingLists,
  type TestApiServer,
} from '../../support/apiServer/index.ts';
import { resourceOfKind } from '../../support/apiServer/resources.ts';
import { seededRandom, startHarness } from './harness.ts';
import { node, SHOP, service, slice } from './objects.ts';

const STREAMS: readonly StreamingLists[] = [true, false, 'noWatchProgress'];

type Pick = (count: number) => number;

function pickFrom(seed: number): Pick {
  const random = seededRandom(seed * 2_654_435_761);
  return (count) => Math.floor(random() * count);
}

function changeOne(server: TestApiServer, pick: Pick): void {
  const index = pick(12);
  const address = `10.${pick(200)}.${pick(200)}.${1 + pick(200)}`;
  const known = server.store.list(resourceOfKind('Service'));
  switch (pick(5)) {
    case 0:
      server.put(service(`s${index}`, { clusterIP: pick(4) === 0 ? 'None' : address }));
      break;
    case 1:
      server.put(
        slice(`e${index}`, [address], pick(4) === 0 ? { 'service.kubernetes.io/headless': '' } : {}),
      );
      break;
    case 2:
      server.put(node('node1', `zone-${pick(3)}`));
      break;
    case 3:
      if (known.length > 0) server.delete('Service', known[pick(known.length)]?.key ?? '');
      break;
    default:
      server.put(service(`s${index}`, { clusterIP: address, ports: [{ port: 1 + pick(100) }] }));
  }
}

const FAULTS: readonly Fault[] = [
  { kind: 'status', error: new StatusError(429, { retryAfter: '2' }) },
  { kind: 'status', error: new StatusError(500, { reason: 'InternalError' }) },
  { kind: 'status', error: new StatusError(410, { reason: 'Expired' }) },
  { kind: 'status', error: new StatusError(403, { reason: 'Forbidden' }) },
  { kind: 'answer', code: 200, contentType: 'application/json', body: '{"items":[{}' },
  { kind: 'answer', code: 200, contentType: 'text/html', body: '<html>\n' },
  { kind: 'answer', code: 200, contentType: 'application/vnd.kubernetes.protobuf', body: 'k8s\0\x12\x7f' },
  { kind: 'reset' },
  { kind: 'hang' },
  { kind: 'cut', afterBytes: 300, clean: false },
  { kind: 'cut', afterBytes: 300, clean: true },
  { kind: 'endAtOnce' },
  { kind: 'slow', bytes: 11 },
];

function breakOne(server: TestApiServer, pick: Pick): void {
  const watches = [...server.watches];
  const watch = watches[pick(Math.max(watches.length, 1))];
  switch (pick(10)) {
    case 0:
      watch?.end();
      break;
    case 1:
      watch?.cut();
      break;
    case 2:
      watch?.hang();
      break;
    case 3:
      watch?.write('{"type":"ADD');
      watch?.end();
      break;
    case 4:
      watch?.write('garbage\n');
      break;
    case 5:
      watch?.fail(new StatusError(pick(2) === 0 ? 410 : 500));
      break;
    case 6:
      server.compact();
      break;
    case 7:
      server.dropConnections();
      break;
    default: {
      const fault = FAULTS[pick(FAULTS.length)];
      if (fault !== undefined) server.faults.add({ on: 'any', fault, times: 1 + pick(4) });
    }
  }
}

it.each(Array.from({ length: 12 }, (_, seed) => [seed]))('seed %i', async (seed) => {
  const pick = pickFrom(seed + 1);
  const harness = await startHarness({
    objects: SHOP,
    streamsLists: STREAMS[seed % STREAMS.length] ?? true,
    history: 20,
  });
  const { server } = harness;
  for (let round = 0; round < 40; round++) {
    for (let changes = pick(4); changes > 0; changes--) changeOne(server, pick);
    if (pick(2) === 0) breakOne(server, pick);
    await harness.pass(500 * pick(30));
  }
  server.faults.clear();
  await harness.settled();
  expect(harness.told().filter((line) => line === 'synced')).toEqual(['synced']);
});
