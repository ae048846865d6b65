/** The table behind ours: it holds back what our rules would have sent on, and nothing else. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { survivorOf } from '../../anySteps.ts';
import { anySteps, perform } from './anySteps.ts';
import { FakeNftKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';
import { outcomesOf, PACKETS, printPacket } from './packets.ts';
import { printPlain } from './cluster.ts';
import { numRuns } from '../../../support/randomCases.ts';

const WEB = ['a/web 10.96.0.1 80@30080 ext=1.1.1.1', 'a/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.2'];

function elementsOf({ elements }: FakeNftKernel): readonly string[] {
  return elements.map(printPlain).sort();
}

const OF_WEB = [
  'frontends { 1.1.1.1 . tcp . 80 }',
  'frontends { 10.96.0.1 . tcp . 80 }',
  'hairpin { 10.244.0.1 . tcp . 10.244.0.1 . 80 }',
  'ports { tcp . 30080 }',
];

describe('what it holds', () => {
  test('frontends of services that have endpoints, and the endpoints of this node', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB, 'a/idle 10.96.0.2 81', 'a/idle-1 of idle 81');
    expect(elementsOf(backstop)).toEqual(OF_WEB);
    expect(harness.failure).toBeUndefined();
  });

  test('a change writes what changed', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    backstop.forget();
    await harness.sync('a/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.3');
    expect(backstop.taken).toEqual([]);
    await harness.sync('a/more 10.96.0.2 81', 'a/more-1 of more 81 | 10.244.0.1 node-b');
    expect(backstop.taken.flat().map(({ kind }) => kind)).toEqual(['addElements']);
    expect(elementsOf(backstop)).toEqual([...OF_WEB, 'frontends { 10.96.0.2 . tcp . 81 }'].sort());
    await harness.sync('- a/more');
    expect(elementsOf(backstop)).toEqual(OF_WEB);
  });

  test('exactly what our rules send on', { timeout: 300_000 + 4000 * numRuns }, async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const backstop = new FakeNftKernel();
        let harness = new Harness({ backstop });
        await harness.sync();
        for (const step of steps) {
          harness = survivorOf(harness, step);
          await perform(harness, step);
          for (const packet of PACKETS) {
            const ours = new Set(outcomesOf(harness.kernel, packet).map(({ kind }) => kind));
            const held = outcomesOf(backstop, packet).map(({ kind }) => kind);
            const wrong =
              (ours.has('forward') && held.some((kind) => kind !== 'drop')) ||
              (ours.has('pass') && held.some((kind) => kind !== 'pass'));
            expect(wrong ? `${printPacket(packet)}: ${[...ours].join()}, ${held.join()}` : 'right').toBe(
              'right',
            );
          }
        }
      }),
      { numRuns },
    );
  });
});

describe('when it cannot be written', () => {
  test('our own table does not mind', async () => {
    const backstop = new FakeNftKernel();
    backstop.fault = () => 'EPERM';
    const harness = new Harness({ backstop });
    const report = await harness.sync(...WEB);
    expect(report.refused.size).toBe(0);
    expect(harness.kernel.elements).not.toEqual([]);
    expect(harness.failure?.reason).toContain('EPERM');
    expect(backstop.table).toBeUndefined();
  });

  test('it is tried again later, and then less and less often', async () => {
    const backstop = new FakeNftKernel();
    backstop.fault = () => 'EPERM';
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    expect(harness.failure?.isNewReason).toBe(true);
    const pauses: (number | undefined)[] = [];
    for (let tries = 0; tries < 8; tries++) {
      const { failure } = harness;
      pauses.push(failure?.retryMs);
      const { attempts } = backstop;
      await harness.sync();
      expect(backstop.attempts).toBe(attempts);
      harness.wait(failure?.retryMs ?? 0);
      await harness.sync();
    }
    expect(harness.failure?.isNewReason).toBe(false);
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    backstop.fault = () => undefined;
    harness.wait(60_000);
    await harness.sync();
    expect(harness.failure).toBeUndefined();
    expect(elementsOf(backstop)).toEqual(OF_WEB);
  });

  test('a change that is refused once is no reason to be without it', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    let faults = 1;
    backstop.fault = () => (faults-- > 0 ? 'ENOMEM' : undefined);
    await harness.sync('a/more 10.96.0.2 81', 'a/more-1 of more 81 | 10.244.0.1 node-b');
    expect(harness.failure).toBeUndefined();
    expect(elementsOf(backstop)).toEqual([...OF_WEB, 'frontends { 10.96.0.2 . tcp . 81 }'].sort());
  });

  test('and no packet misses it meanwhile: what differs is written', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    let isLost = true;
    backstop.after = () => {
      // What is there now is all that a packet would see.
      expect(elementsOf(backstop)).toEqual(expect.arrayContaining([...OF_WEB]));
      if (!isLost) return;
      isLost = false;
      throw new Error('the answer is lost');
    };
    await harness.sync('a/more 10.96.0.2 81', 'a/more-1 of more 81 | 10.244.0.1 node-b');
    expect(isLost).toBe(false);
    expect(harness.failure).toBeUndefined();
    expect(elementsOf(backstop)).toEqual([...OF_WEB, 'frontends { 10.96.0.2 . tcp . 81 }'].sort());
  });

  test('its chains come when everything else is there', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    const kinds = backstop.taken.flat().map(({ kind }) => kind);
    expect(kinds.lastIndexOf('addElements')).toBeLessThan(kinds.lastIndexOf('addChain'));
  });

  test('one that holds back too much is removed', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    backstop.fault = (transaction) =>
      transaction.length === 1 && transaction[0]?.kind === 'deleteTable' ? undefined : 'ENOMEM';
    await harness.sync('- a/web');
    expect(harness.failure?.reason).toContain('ENOMEM');
    expect(backstop.table).toBeUndefined();
  });

  test('one that went with its socket comes back with the next full sync', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    backstop.table = undefined;
    await harness.syncFull();
    expect(elementsOf(backstop)).toEqual(OF_WEB);
  });

  test('and with any sync, where its socket may have gone', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    backstop.table = undefined;
    harness.doubt();
    await harness.sync();
    expect(elementsOf(backstop)).toEqual(OF_WEB);
  });
});

describe('where our own table is not as it should be', () => {
  test('a service that it could not take is not held back', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB);
    harness.kernel.fault = (transaction) =>
      transaction.some(
        (operation) =>
          operation.kind === 'addElements' &&
          operation.elements.some(({ endpoint }) => endpoint?.ip === '10.244.0.9'),
      )
        ? 'ENOMEM'
        : undefined;
    const report = await harness.sync('a/more 10.96.0.2 81', 'a/more-1 of more 81 | 10.244.0.9');
    expect([...report.refused.keys()]).toEqual(['a/more/TCP']);
    expect(elementsOf(backstop)).toEqual(OF_WEB);
    harness.kernel.fault = () => undefined;
    await harness.sync();
    expect(elementsOf(backstop)).toEqual([...OF_WEB, 'frontends { 10.96.0.2 . tcp . 81 }'].sort());
  });

  test('a service that goes is let go of, also when the sync fails', async () => {
    const backstop = new FakeNftKernel();
    const harness = new Harness({ backstop });
    await harness.sync(...WEB, 'a/more 10.96.0.2 81', 'a/more-1 of more 81 | 10.244.0.9');
    harness.kernel.before = () => {
      throw new Error('the kernel does not answer');
    };
    await expect(harness.sync('- a/web')).rejects.toThrow('does not answer');
    expect(elementsOf(backstop)).toEqual(['frontends { 10.96.0.2 . tcp . 81 }']);
    harness.kernel.before = () => {};
    await harness.sync(...WEB);
    expect(elementsOf(backstop)).toEqual([...OF_WEB, 'frontends { 10.96.0.2 . tcp . 81 }'].sort());
  });
});
