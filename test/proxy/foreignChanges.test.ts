import { describe, expect, test } from 'vitest';
import { type ForeignChange, ForeignChanges } from '../../src/proxy/foreignChanges.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { FakeLog } from './fakes.ts';

const NFT = { processName: 'nft', processId: 4711 };
const FLUSH: ForeignChange = { objects: ['chain nat KUBE-SERVICES'], changedBy: NFT };

class Stage {
  readonly clock = new FakeClock();
  readonly log = new FakeLog();
  readonly programs: string[] = [];
  repairs = 0;
  readonly changes = new ForeignChanges({
    family: 'IPv4',
    log: this.log.log,
    clock: this.clock,
    repair: () => this.repairs++,
    onChange: (program) => this.programs.push(program),
  });

  get lines(): string {
    return this.log.lines.join('');
  }

  repair(): void {
    this.changes.syncBegan();
    this.changes.syncEnded();
  }
}

describe('one change', () => {
  test('is repaired at once, counted, and logged once it is repaired, with the program and the object', () => {
    const stage = new Stage();
    stage.changes.noticed(FLUSH);
    expect(stage.repairs).toBe(1);
    expect(stage.programs).toEqual(['nft']);
    expect(stage.lines).toBe('');
    stage.repair();
    expect(stage.lines).toContain(
      '"level":"warning","msg":"Another program changed our rules; repaired","ipFamily":"IPv4",' +
        '"changedBy":"nft (pid 4711)","objects":"chain nat KUBE-SERVICES","changes":1',
    );
    stage.repair();
    expect(stage.log.lines).toHaveLength(1);
  });

  test('whose program nobody knows is counted as unknown', () => {
    const stage = new Stage();
    stage.changes.noticed({ objects: ['table nat'] });
    stage.repair();
    expect(stage.programs).toEqual(['unknown']);
    expect(stage.lines).toContain('"changedBy":"unknown"');
  });

  test('during a sync is repaired by the next one', () => {
    const stage = new Stage();
    stage.changes.syncBegan();
    stage.changes.noticed(FLUSH);
    stage.changes.syncEnded();
    expect(stage.lines).toBe('');
    stage.repair();
    expect(stage.log.lines).toHaveLength(1);
  });

  test('whose repair failed is kept until one succeeds, together with later ones', () => {
    const stage = new Stage();
    stage.changes.noticed(FLUSH);
    stage.changes.syncBegan();
    stage.changes.noticed({ objects: ['chain nat KUBE-NODEPORTS'], changedBy: { ...NFT, processId: 5 } });
    stage.repair();
    expect(stage.log.lines).toHaveLength(1);
    expect(stage.lines).toContain('"changedBy":"nft (pid 4711), nft (pid 5)"');
    expect(stage.lines).toContain(
      '"objects":"chain nat KUBE-SERVICES, chain nat KUBE-NODEPORTS","changes":2',
    );
  });
});

test('of many objects some are named', () => {
  const stage = new Stage();
  stage.changes.noticed({ objects: Array.from({ length: 5000 }, (_, index) => `chain nat ${index}`) });
  stage.repair();
  expect(stage.lines).toContain('"objects":"chain nat 0, chain nat 1, chain nat 2 and many more"');
});

describe('two managers', () => {
  /** The other program answers each repair after a second, so often. */
  async function fight(stage: Stage, rounds: number, change = FLUSH): Promise<readonly number[]> {
    const delays: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await stage.clock.advance(1000);
      const before = stage.repairs;
      stage.changes.noticed(change);
      const noticedAt = stage.clock.now();
      while (stage.repairs === before) await stage.clock.advance(500);
      delays.push((stage.clock.now() - noticedAt) / 1000);
      stage.repair();
    }
    return delays;
  }

  test('that fight: each repair waits longer, and both are named once', async () => {
    const stage = new Stage();
    expect(await fight(stage, 13)).toEqual([0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]);
    const told = stage.log.lines.filter((line) => line.includes("keep undoing each other's changes"));
    expect(told).toHaveLength(2); // at its beginning, and when the delay cannot grow any more
    expect(told[0]).toContain(`"junction":"Junction (pid ${process.pid})","changedBy":"nft (pid 4711)"`);
    expect(told[0]).toContain('"objects":"chain nat KUBE-SERVICES"');
    expect(told[0]).toContain('"whatToDo":');
  });

  test('that stopped fighting: the next change is repaired at once', async () => {
    const stage = new Stage();
    await fight(stage, 8);
    await stage.clock.advance(11_000);
    expect(await fight(stage, 1)).toEqual([0]);
  });

  test('over one object: another object is repaired at once', async () => {
    const stage = new Stage();
    await fight(stage, 8);
    expect(await fight(stage, 1, { objects: ['chain filter KUBE-FORWARD'] })).toEqual([0]);
  });

  test('a sync for another reason repairs too, and none follows for the same change', async () => {
    const stage = new Stage();
    await fight(stage, 7);
    const before = stage.repairs;
    await stage.clock.advance(1000);
    stage.changes.noticed(FLUSH);
    stage.repair();
    await stage.clock.advance(60_000);
    expect(stage.repairs).toBe(before);
  });

  test('nothing is scheduled after the end', async () => {
    const stage = new Stage();
    await fight(stage, 7);
    await stage.clock.advance(1000);
    stage.changes.noticed(FLUSH);
    stage.changes.close();
    expect(stage.clock.pending).toBe(0);
  });
});
