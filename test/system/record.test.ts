/** The record of what was written: what it says after any end of its process, and when it is not used. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ServicePortId } from '../../src/model/serviceTracker.ts';
import type { ServicePortPlan } from '../../src/plan/types.ts';
import { readJournal } from '../../src/system/record/journal.ts';
import type { FamilyRecord, MarkedRules } from '../../src/system/record/familyRecord.ts';
import { RecordFile } from '../../src/system/record/recordFile.ts';
import { WrittenRecord } from '../../src/system/record/writtenRecord.ts';
import { createLog } from '../../src/log/log.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { Cluster } from '../plan/cluster.ts';

/** The rules of the kernel, as far as a record asks for them. */
class FakeRules implements MarkedRules {
  handle = 1;
  mark: string | undefined;
  generation = 10;

  async identity(mark: string): Promise<string | undefined> {
    return mark === this.mark ? `${this.handle}` : undefined;
  }

  async setMark(mark: string | undefined): Promise<void> {
    this.mark = mark;
    this.generation++;
  }
}

type Plans = ReadonlyMap<ServicePortId, ServicePortPlan>;

function plansOf(...lines: readonly string[]): Plans {
  const cluster = new Cluster();
  cluster.tell(...lines).replan();
  return new Map(cluster.planner.servicePorts);
}

const A = ['a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1'];
const B = ['a/y 10.96.0.2 80', 'a/y-1 of y 80 | 10.244.0.2'];
const OPTIONS = { mark: 0x4000 };

describe('the record', () => {
  let directory: string;
  let rules: FakeRules;
  const opened: WrittenRecord[] = [];
  const file = (): string => join(directory, 'written.bin');

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'junction-record-'));
    rules = new FakeRules();
  });
  afterEach(async () => {
    for (const record of opened.splice(0)) await record.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Another process. */
  function start(mode = 'nftables', isKnown = true): { record: WrittenRecord; family: FamilyRecord } {
    const record = new WrittenRecord({
      directory,
      mode,
      generationAtStart: rules.generation,
      generation: async () => ({ id: rules.generation, isKnown }),
      log: createLog({ verbosity: 0, format: 'text', write: () => undefined }),
    });
    opened.push(record);
    return { record, family: record.family('IPv4', rules) };
  }

  async function write(
    { family }: { family: FamilyRecord },
    applied: Plans,
    more: { ids?: Iterable<ServicePortId>; isFull?: boolean; isWhole?: boolean } = {},
  ): Promise<void> {
    await family.begin();
    rules.generation++;
    end(family, applied, more);
  }

  function end(family: FamilyRecord, applied: Plans, more: object = {}): void {
    family.end({
      ids: applied.keys(),
      applied,
      withoutComments: new Set(),
      options: OPTIONS,
      state: { parts: 1 },
      isFull: true,
      isWhole: true,
      ...more,
    });
  }

  const journal = (): ReturnType<typeof readJournal> => {
    try {
      return readJournal(readFileSync(file()));
    } catch {
      return 'none';
    }
  };

  async function isSettled(): Promise<void> {
    await eventually('the record is complete', () => {
      const read = journal();
      return typeof read === 'object' && !read.isOpen;
    });
  }

  async function written(...lines: readonly string[]): Promise<WrittenRecord> {
    const process = start();
    await process.family.restore(new Map(), OPTIONS);
    await write(process, plansOf(...lines));
    await isSettled();
    return process.record;
  }

  test('gives back what was written, with the objects of the new plan', async () => {
    await written(...A, ...B);
    const now = plansOf(...A, ...B);
    const restored = await start().family.restore(now, OPTIONS);
    expect(restored).toMatchObject({ differing: [], isCurrent: true, state: { parts: 1 } });
    for (const [id, port] of now) expect(restored?.applied.get(id)).toBe(port);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  test('names what differs: changed, gone, and new', async () => {
    await written(...A, ...B);
    const now = plansOf(A[0] ?? '', 'a/x-1 of x 80 | 10.244.0.9', 'b/z 10.96.0.3 80');
    const restored = await start().family.restore(now, OPTIONS);
    expect(restored?.differing.toSorted()).toEqual(['a/x/TCP', 'a/y/TCP', 'b/z/TCP']);
    expect([...(restored?.applied ?? [])]).toEqual([...plansOf(...A, ...B)]);
  });

  const REASONS: readonly (readonly [what: string, act: () => unknown, why: RegExp])[] = [
    ['another handle', () => rules.handle++, /made again/],
    ['no mark', () => (rules.mark = undefined), /without its mark/],
    ['a byte changed', () => changeByte(), /cut off, or was changed/],
    ['no file', () => rmSync(file()), /there is none/],
    ['a file for everybody', () => chmodSync(file(), 0o666), /changed by others/],
  ];

  function changeByte(): void {
    const bytes = readFileSync(file());
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(file(), bytes);
  }

  test.each(REASONS)('is not used with %s', async (_, act, why) => {
    await written(...A);
    act();
    const { family } = start();
    expect(await family.restore(plansOf(...A), OPTIONS)).toBeUndefined();
    expect(family.start).toMatchObject({ why: expect.stringMatching(why) as string });
  });

  test('is not used in another mode, or with other options', async () => {
    await written(...A);
    expect(await start().family.restore(plansOf(...A), { mark: 1 })).toBeUndefined();
    expect(await start('iptables').family.restore(plansOf(...A), OPTIONS)).toBeUndefined();
    expect(journal()).toBe('none'); // what cannot be used any more is deleted
  });

  test('is not current where another program changed something, and where that is not known', async () => {
    await written(...A);
    rules.generation++;
    const second = start('nftables', false);
    expect(await second.family.restore(plansOf(...A), OPTIONS)).toMatchObject({ isCurrent: false });
    await write(second, plansOf(...A), { isFull: false });
    await isSettled();
    expect(journal()).toMatchObject({ generation: 0 });
  });

  test('of a process that ended between its intent and its commit holds; after the commit it does not', async () => {
    await written(...A);
    const second = start();
    await second.family.restore(plansOf(...A), OPTIONS);
    await second.family.begin();
    expect(journal()).toMatchObject({ isOpen: true });
    expect(await start().family.restore(plansOf(...A), OPTIONS)).toBeDefined();
    rules.generation++;
    const { family } = start();
    expect(await family.restore(plansOf(...A), OPTIONS)).toBeUndefined();
    expect(family.start).toEqual({ why: 'its process ended while it changed the kernel' });
  });

  test('does not hold after a sync that failed, or with something refused, until all is right', async () => {
    await written(...A);
    const second = start();
    await second.family.restore(plansOf(...A), OPTIONS);
    await second.family.begin();
    second.family.failed();
    await write(second, plansOf(...A), { isWhole: false });
    expect(journal()).toMatchObject({ isOpen: true });
    await write(second, plansOf(...A));
    await isSettled();
  });

  test('that cannot be written any more takes its mark from the kernel before the next commit', async () => {
    const process = start();
    await process.family.restore(new Map(), OPTIONS);
    await write(process, plansOf(...A));
    await isSettled();
    expect(rules.mark).toBeDefined();
    // What its file would do on a full disk.
    const full = vi.spyOn(RecordFile.prototype, 'append').mockImplementation(() => {
      throw new Error('ENOSPC: no space left on device');
    });
    await process.family.begin();
    full.mockRestore();
    expect(rules.mark).toBeUndefined();
    expect(process.record.mark).toBeUndefined();
    expect(journal()).toBe('none');
  });

  test('any bytes are read without a throw, and no part of a record is taken for another', async () => {
    await written(...A, ...B);
    const whole = readFileSync(file());
    fc.assert(
      fc.property(fc.nat({ max: whole.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, bits) => {
        const changed = Buffer.from(whole);
        changed[at] = (changed[at] ?? 0) ^ bits;
        expect(typeof readJournal(changed)).toBe('string');
        const part = readJournal(whole.subarray(0, at));
        expect(typeof part === 'string' || part.isOpen).toBe(true);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(typeof readJournal(bytes)).toBe('string');
      }),
    );
  });
});
