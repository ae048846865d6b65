/** Which changes are written before the kernel is read; what the contract of the modes cannot tell from outside. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { ServicePortId } from '../../src/model/serviceTracker.ts';
import type { ServicePortPlan } from '../../src/plan/types.ts';
import { type Changes, Reconciler, type Resync, type WithServicePorts } from '../../src/proxy/reconciler.ts';
import { RetryDelay, type SyncReport } from '../../src/proxy/report.ts';

const planOf = (id: string): ServicePortPlan => ({ id }) as never;

class Part extends Reconciler<string, WithServicePorts> {
  readonly servicePorts = new Map<ServicePortId, ServicePortPlan>();
  readonly calls: string[] = [];
  onResync = (): void => {};
  apply: (changes: Changes<string, WithServicePorts>) => Promise<boolean> = (changes) => this.#apply(changes);

  async #apply({ ids, report }: Changes<string, WithServicePorts>): Promise<boolean> {
    this.calls.push(`apply ${ids.join()}`);
    report.commits++;
    return true;
  }

  async resync({ plan, unwritten, isSettled }: Resync<string, WithServicePorts>): Promise<void> {
    const own = unwritten ? [...unwritten].join() : 'anything';
    this.calls.push(
      `resync ${[...plan.servicePorts.keys()].join()} (${own})${isSettled ? '' : ' unsettled'}`,
    );
    this.onResync();
  }

  sync(ids: readonly ServicePortId[], options = 'options'): Promise<SyncReport> {
    this.calls.length = 0;
    for (const id of ids) this.servicePorts.set(id, planOf(id));
    return this.reconcile({ servicePorts: this.servicePorts }, ids, options);
  }
}

describe('a reconciler', () => {
  let part: Part;
  beforeEach(async () => {
    part = new Part();
    await part.sync(['a', 'b']);
  });

  test('writes what changed after that', async () => {
    expect(await part.sync(['c'])).toMatchObject({ kind: 'incremental', commits: 1 });
    expect(part.calls).toEqual(['apply c']);
    expect(part.attempt).toBe('partial');
    expect([...part.applied.keys()]).toEqual(['a', 'b', 'c']);
  });

  test('writes its own changes before a look that was requested', async () => {
    part.requestFull();
    expect((await part.sync(['c'])).kind).toBe('full');
    expect(part.calls).toEqual(['apply c', 'resync a,b,c ()']);
    await part.sync([]);
    expect(part.calls).toEqual(['apply ']);
  });

  test('does not lose a request that comes while it looks', async () => {
    part.onResync = () => {
      part.onResync = () => {};
      part.requestFull();
    };
    part.requestFull();
    await part.sync([]);
    await part.sync([]);
    expect(part.calls).toEqual(['apply ', 'resync a,b ()']);
  });

  test('reads the kernel where changes are refused, and knows which are its own', async () => {
    part.apply = () => Promise.resolve(false);
    const report = await part.sync(['c']);
    expect(part.calls).toEqual(['resync a,b,c (c) unsettled']);
    expect(report).toMatchObject({ kind: 'full', counts: { 'partial.failures': 1 } });
  });

  test('reads the kernel after a failure, and after other options', async () => {
    const { apply } = part;
    part.apply = () => Promise.reject(new Error('no answer'));
    await expect(part.sync(['c'])).rejects.toThrow('no answer');
    expect(part.attempt).toBe('partial');
    part.apply = apply;
    await part.sync([]);
    expect(part.calls).toEqual(['resync a,b,c (anything) unsettled']);
    await part.sync([], 'others');
    expect(part.calls).toEqual(['resync a,b,c (anything)']);
  });
});

test('what fails again and again is tried less and less often', () => {
  const retry = new RetryDelay();
  expect([retry.isDue(0), retry.remainingMs(0)]).toEqual([true, undefined]);
  expect([1, 2, 3, 4, 5, 6, 7, 8].map(() => retry.failed(0))).toEqual([
    1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000,
  ]);
  expect([retry.isDue(59_000), retry.isDue(60_000), retry.remainingMs(59_000)]).toEqual([false, true, 1000]);
  retry.succeeded();
  expect([retry.isWaiting, retry.failed(0)]).toEqual([false, 1000]);
});
