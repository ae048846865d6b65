/** Chains that nothing needs and that the kernel does not delete at first: a later sync does. */
import { describe, expect, test } from 'vitest';
import { refusal } from './fakeKernel.ts';
import { chainName, Harness } from './harness.ts';

const GONE = chainName('SVC', 'a/b');
const SERVICES = [
  'a/b 10.96.0.1 80',
  'a/b-1 of b 80 | 10.244.0.1',
  'c/d 10.96.0.2 80',
  'c/d-1 of d 80 | 10.244.0.2',
];

/** With both services, and a clock that stands still. */
async function begin(): Promise<{ readonly harness: Harness; readonly clock: { now: number } }> {
  const clock = { now: 0 };
  const harness = new Harness({ now: () => clock.now });
  await harness.sync(...SERVICES);
  return { harness, clock };
}

describe('another program jumps to a chain of a deleted service', () => {
  async function jumpedTo(): Promise<Awaited<ReturnType<typeof begin>>> {
    const begun = await begin();
    begun.harness.kernel.tamper('nat', ':HOSTPORTS - [0:0]', `-A HOSTPORTS -j ${GONE}`);
    expect(await begun.harness.sync('- a/b', '- a/b-1')).toMatchObject({ kind: 'full', retryAfterMs: 1000 });
    expect(begun.harness.kernel.chains('nat')).toContain(GONE);
    return begun;
  }

  test('it is deleted once nothing jumps there, when its time has come', async () => {
    const { harness, clock } = await jumpedTo();
    harness.kernel.tamper('nat', '-F HOSTPORTS');
    clock.now = 900;
    expect(await harness.sync()).toMatchObject({ kind: 'nothing', retryAfterMs: 100 });
    expect(harness.kernel.attempts).toEqual([]);
    clock.now = 1000;
    const report = await harness.sync();
    expect(report).toMatchObject({ kind: 'incremental', retryAfterMs: undefined, repaired: [] });
    expect(harness.kernel.chains('nat')).not.toContain(GONE);
  });

  test('the pauses become longer, and changes of other services go on', async () => {
    const { harness, clock } = await jumpedTo();
    clock.now = 1000;
    const report = await harness.sync('c/d-1 of d 80 | 10.244.0.3');
    expect(report).toMatchObject({ kind: 'incremental', retryAfterMs: 2000 });
    expect(harness.kernel.chains('nat')).toContain(chainName('SEP', 'c/d', '10.244.0.3:80'));
  });

  test('the service is back: its chain is written, and stays', async () => {
    const { harness, clock } = await jumpedTo();
    expect(await harness.sync(...SERVICES)).toMatchObject({ kind: 'incremental', retryAfterMs: undefined });
    clock.now = 1000;
    await harness.sync('c/d-1 of d 80 | 10.244.0.3');
    expect(harness.kernel.rulesOf('nat', GONE)).not.toEqual([]);
  });
});

test('the kernel has no memory for a deletion: nothing stays', async () => {
  const { harness, clock } = await begin();
  harness.kernel.fault = ({ text }) => (text.includes('-X ') ? refusal('ENOMEM') : undefined);
  expect(await harness.sync('- a/b', '- a/b-1')).toMatchObject({ kind: 'full', retryAfterMs: 1000 });
  harness.kernel.fault = () => undefined;
  clock.now = 1000;
  await harness.sync();
  expect(harness.meaning).toEqual(await harness.fromScratch());
});

test('a full sync tries at once', async () => {
  const { harness } = await begin();
  harness.kernel.fault = ({ text }) => (text.includes('-X ') ? refusal('ENOMEM') : undefined);
  await harness.sync('- a/b', '- a/b-1');
  harness.kernel.fault = () => undefined;
  expect((await harness.syncFull()).retryAfterMs).toBeUndefined();
  expect(harness.meaning).toEqual(await harness.fromScratch());
});
