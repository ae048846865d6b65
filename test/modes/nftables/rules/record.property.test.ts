/**
 * A process that is killed at any moment, and the next one that starts from its record: in the end the table is what a
 * fresh start makes of the same cluster, and it is read only where the record does not hold.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLog } from '../../../../src/log/log.ts';
import type { NftClient } from '../../../../src/modes/nftables/rules/table.ts';
import type { FamilyRecord } from '../../../../src/system/record/familyRecord.ts';
import { WrittenRecord } from '../../../../src/system/record/writtenRecord.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { anyServiceLine, anySliceLine } from '../../../plan/anyCluster.ts';
import { FakeNftKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'junction-record-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

class Killed extends Error {}

/** A machine on which one process runs after the other. */
class Machine {
  readonly kernel = new FakeNftKernel('IPv4');
  readonly cluster = new Cluster();
  readonly #directory = mkdtempSync(join(root, 'run-'));
  #generation = 10;
  #mark: string | undefined;
  readings = 0;
  /** The process ends with so many commits from now. */
  commitsLeft = Number.POSITIVE_INFINITY;
  #record: WrittenRecord | undefined;
  family: FamilyRecord | undefined;
  #harness: Harness | undefined;

  start(): void {
    this.commitsLeft = Number.POSITIVE_INFINITY;
    const record = new WrittenRecord({
      directory: this.#directory,
      mode: 'nftables',
      generationAtStart: this.#generation,
      generation: async () => ({ id: this.#generation, isKnown: true }),
      log: createLog({ verbosity: 0, format: 'text', write: () => undefined }),
    });
    this.#record = record;
    this.family = record.family('IPv4', {
      identity: async (mark) => (this.kernel.table && mark === this.#mark ? 'one' : undefined),
      setMark: async (mark) => {
        this.#mark = mark;
        this.#generation++;
      },
    });
    this.readings = 0;
    const { kernel, cluster } = this;
    this.#harness = new Harness({ kernel, cluster, client: this.#client(), record: this.family });
  }

  #client(): NftClient {
    return {
      inspect: (...args) => {
        this.readings++;
        return this.kernel.inspect(...args);
      },
      commit: async (transaction) => {
        if (this.commitsLeft-- <= 0) throw new Killed();
        const outcome = await this.kernel.commit(transaction);
        if (outcome.state === 'done') this.#generation++;
        return outcome;
      },
      affinityEntries: (...args) => this.kernel.affinityEntries(...args),
      differing: (...args) => this.kernel.differing(...args),
      lookUp: (...args) => this.kernel.lookUp(...args),
      sizes: (...args) => this.kernel.sizes(...args),
      keyList: () => this.kernel.keyList(),
      others: (...args) => this.kernel.others(...args),
    };
  }

  async sync(...lines: readonly string[]): Promise<void> {
    try {
      await this.#harness?.sync(...lines);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
  }

  /** Everything that is written has been recorded. */
  async settle(): Promise<void> {
    await this.#record?.close();
  }

  get harness(): Harness {
    return this.#harness ?? expect.unreachable();
  }
}

const anyLine = fc.oneof(
  { weight: 3, arbitrary: anyServiceLine },
  { weight: 3, arbitrary: anySliceLine },
  { weight: 1, arbitrary: fc.constantFrom('a/x', 'a/y', 'b/z', 'a/x-1').map((path) => `- ${path}`) },
);
const anyLife = fc.record({
  syncs: fc.array(fc.array(anyLine, { maxLength: 4 }), { minLength: 1, maxLength: 4 }),
  /** In the last sync, if at all. */
  killedAfter: fc.option(fc.nat({ max: 2 })),
  meanwhile: fc.array(anyLine, { maxLength: 3 }),
});

test('whatever happened before, and wherever a process was killed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyLife, { minLength: 1, maxLength: 4 }), async (lives) => {
      const machine = new Machine();
      for (const [index, { syncs, killedAfter, meanwhile }] of lives.entries()) {
        machine.start();
        for (const [at, lines] of syncs.entries()) {
          if (at === syncs.length - 1 && killedAfter !== null) machine.commitsLeft = killedAfter;
          await machine.sync(...lines);
          if (index > 0 && at === 0 && machine.family?.start && 'differed' in machine.family.start)
            expect(machine.readings).toBe(0);
        }
        await machine.settle();
        machine.cluster.tell(...meanwhile);
      }
      machine.start();
      await machine.sync();
      expect(machine.harness.world).toEqual(await machine.harness.fromScratch());
      await machine.settle();
    }),
  );
});

test('nothing is read where nothing has changed', async () => {
  const machine = new Machine();
  machine.start();
  await machine.sync('a/x 10.96.0.1 80 affinity=10800', 'a/x-1 of x 80 | 10.244.0.1 | 10.244.0.2');
  expect(machine.readings).toBe(1);
  await machine.settle();
  machine.start();
  await machine.sync();
  expect(machine.readings).toBe(0);
  expect(machine.family?.start).toEqual({ servicePorts: 1, differed: 0, isCurrent: true });
  await machine.sync('a/x-1 of x 80 | 10.244.0.3');
  expect(machine.readings).toBe(0);
  expect(machine.harness.world).toEqual(await machine.harness.fromScratch());
  await machine.settle();
});
