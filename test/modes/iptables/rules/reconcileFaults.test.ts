/** Restores that fail: what is kept, what is tried again, and who else has to wait for it. */
import { describe, expect, test } from 'vitest';
import { LAYOUT_NAMES } from './layoutNames.ts';
import { EMPTY, type Fault, lockHeld, refusal } from './fakeKernel.ts';
import { chainName, Harness } from './harness.ts';

const services = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => [
    `x/s${n} 10.96.${n >> 8}.${n & 255} 80@${20000 + n}`,
    `x/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255}`,
  ]).flat();

/** The kernel will not have anything with this text in it. */
function refusing(text: string): Fault {
  return (restore) => (restore.text.includes(text) ? refusal(`refused: ${text}`) : undefined);
}

function failOnce(error: Error): Fault {
  let failed = false;
  return () => {
    if (failed) return undefined;
    failed = true;
    return error;
  };
}

describe('one restore fails', () => {
  test('at the start: the next sync begins again', async () => {
    const harness = new Harness();
    harness.kernel.fault = () => lockHeld();
    await expect(harness.sync(...services(3))).rejects.toThrow('lock');
    expect(harness.kernel.text.trim()).toBe(EMPTY.trim());
    harness.kernel.fault = () => undefined;
    const report = await harness.sync();
    expect(report.kind).toBe('full');
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('because of the lock: it is not divided, and the next sync is full', async () => {
    const harness = new Harness();
    await harness.sync(...services(20));
    harness.kernel.fault = () => lockHeld();
    await expect(harness.sync(...services(40))).rejects.toThrow('lock');
    expect(harness.kernel.attempts).toHaveLength(1);
    expect(harness.kernel.saves).toBe(0);
    harness.kernel.fault = () => undefined;
    expect((await harness.sync()).kind).toBe('full');
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('what a sync set out to do is known after it failed', async () => {
    const harness = new Harness();
    harness.kernel.fault = () => lockHeld();
    await expect(harness.sync(...services(3))).rejects.toThrow('lock');
    expect(harness.attempt).toBe('full');
    harness.kernel.fault = () => undefined;
    expect((await harness.sync()).counts['partial.failures']).toBeUndefined();
    harness.kernel.fault = () => lockHeld();
    await expect(harness.sync(...services(4))).rejects.toThrow('lock');
    expect(harness.attempt).toBe('partial');
  });

  test('what changed is refused: a full sync follows, and the report says so', async () => {
    const harness = new Harness();
    await harness.sync(...services(3));
    harness.kernel.fault = failOnce(refusal('a chain is gone'));
    const report = await harness.sync(...services(4));
    expect(report).toMatchObject({
      kind: 'full',
      counts: { 'partial.failures': 1, 'restore.refusals': 1 },
    });
    expect((await harness.sync(...services(5))).counts['partial.failures']).toBeUndefined();
  });

  test('the lock again in the middle of a full sync', async () => {
    const harness = new Harness();
    let left = 2;
    harness.kernel.fault = () => (left-- > 0 ? undefined : lockHeld());
    await expect(harness.sync(...services(10))).rejects.toThrow('lock');
    expect(harness.kernel.attempts).toHaveLength(3);
    harness.kernel.fault = () => undefined;
    await harness.sync();
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('because the kernel says no: the same sync looks, mends, and finishes', async () => {
    const harness = new Harness();
    await harness.sync(...services(5));
    harness.kernel.fault = failOnce(refusal());
    const report = await harness.sync('x/s1-1 of s1 80 | 10.244.0.1 | 10.244.9.9');
    expect(report.kind).toBe('full');
    expect(report.refused.size).toBe(0);
    expect(harness.meaning).toEqual(await harness.fromScratch());
    expect((await harness.sync('x/s2-1 of s2 80 | 10.244.0.2 | 10.244.9.8')).kind).toBe('incremental');
  });

  test('because a rule that should go has gone already: mended too', async () => {
    const harness = new Harness();
    await harness.sync(...services(5));
    const rule = harness.kernel.rulesOf('nat', 'KUBE-SERVICES').find((text) => text.includes('x/s1 ')) ?? '';
    harness.kernel.tamper('nat', `-D KUBE-SERVICES ${rule}`);
    const report = await harness.sync('- x/s1', '- x/s1-1');
    expect(report).toMatchObject({ kind: 'full' });
    expect(report.refused.size).toBe(0);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('for a reason that nobody knows: it is thrown', async () => {
    const harness = new Harness();
    await harness.sync(...services(1));
    harness.kernel.fault = () => new Error('no such file');
    await expect(harness.sync('- x/s0')).rejects.toThrow('no such file');
    harness.kernel.fault = () => undefined;
    await harness.sync();
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });
});

describe.each(LAYOUT_NAMES)('layout %s: the kernel refuses one service', (layout) => {
  const ID = 'x/s7/TCP';
  const SVC = chainName('SVC', 'x/s7');

  test.each([true, false])('at a cold start all others are served (by drafts: %s)', async (hasDrafts) => {
    const harness = new Harness({ layout });
    Object.assign(harness.kernel, { hasDrafts, chainsPerRestore: 15 });
    harness.kernel.fault = refusing(SVC);
    const report = await harness.sync(...services(40));
    expect([...report.refused.keys()]).toEqual([ID]);
    expect(report.refused.get(ID)?.message).toContain('refused');
    // Those before it; from then on pieces have to be left out.
    expect(harness.kernel.drafted).toBe(hasDrafts ? 1 : 0);
    expect(harness.kernel.text).toContain('"x/s6 cluster IP"');
    expect(harness.kernel.text).toContain('"x/s8 cluster IP"');
    expect(harness.kernel.text).not.toContain('"x/s7 cluster IP"');
    expect(harness.kernel.rulesOf('nat', 'KUBE-SERVICES').at(-1)).toContain('must be the last rule');
  });

  test('in a change it keeps what it had, and the others change', async () => {
    const harness = new Harness({ layout });
    await harness.sync(...services(12));
    const before = harness.kernel.rulesOf('nat', SVC);
    harness.kernel.fault = refusing(`:${SVC}`);
    const report = await harness.sync(
      'x/s7-1 of s7 80 | 10.244.0.7 | 10.244.9.7',
      'x/s8-1 of s8 80 | 10.244.9.8',
      '- x/s9',
      '- x/s9-1',
    );
    expect([...report.refused.keys()]).toEqual([ID]);
    expect(harness.kernel.rulesOf('nat', SVC)).toEqual(before);
    const [endpoint = ''] = harness.kernel.rulesOf('nat', SVC).slice(-1);
    expect(harness.kernel.chains('nat')).toContain(endpoint.split(' ').at(-1));
    expect(harness.kernel.text).toContain('10.244.9.8:80');
    expect(harness.kernel.rulesOf('nat', 'KUBE-SERVICES').join()).not.toContain('x/s9');
    // What nothing leads to any more is taken away when the kernel has relented.
    harness.kernel.fault = () => undefined;
    await harness.syncFull();
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('other changes go on meanwhile, one by one', async () => {
    const harness = new Harness({ layout });
    harness.kernel.fault = refusing(SVC);
    await harness.sync(...services(12));
    const report = await harness.sync('x/s8-1 of s8 80 | 10.244.9.8');
    expect(report.kind).toBe('incremental');
    expect([...report.refused.keys()]).toEqual([ID]);
  });

  test('when it changes it is tried again, and when the kernel relents it is served', async () => {
    const harness = new Harness({ layout });
    harness.kernel.fault = refusing(SVC);
    await harness.sync(...services(12));
    const again = await harness.sync('x/s7-1 of s7 80 | 10.244.9.7');
    expect([...again.refused.keys()]).toEqual([ID]);
    harness.kernel.fault = () => undefined;
    const report = await harness.syncFull();
    expect(report.refused.size).toBe(0);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('when it is deleted everything is well', async () => {
    const harness = new Harness({ layout });
    await harness.sync(...services(12));
    harness.kernel.fault = refusing(`:${SVC}`);
    await harness.sync('x/s7-1 of s7 80 | 10.244.9.7');
    harness.kernel.fault = () => undefined;
    const report = await harness.sync('- x/s7', '- x/s7-1');
    expect(report.refused.size).toBe(0);
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('its rule in a shared chain', async () => {
    const harness = new Harness({ layout });
    harness.kernel.fault = refusing('-m comment --comment x/s7 -m tcp -p tcp --dport 20007');
    const report = await harness.sync(...services(40));
    expect([...report.refused.keys()]).toEqual([ID]);
    for (const n of [0, 6, 8, 39]) {
      expect(harness.kernel.text).toContain(`"x/s${n} cluster IP"`);
      expect(harness.kernel.text).toContain(`--dport ${20000 + n}`);
    }
    expect(harness.kernel.text).not.toContain('--dport 20007');
    expect(harness.kernel.rulesOf('nat', 'KUBE-SERVICES').at(-1)).toContain('must be the last rule');
    expect(harness.kernel.rulesOf('nat', 'PREROUTING')).toHaveLength(1);
  });

  test('two of many', async () => {
    const harness = new Harness({ layout });
    const other = chainName('SVC', 'x/s30');
    harness.kernel.fault = (restore) => refusing(SVC)(restore) ?? refusing(other)(restore);
    const report = await harness.sync(...services(40));
    expect([...report.refused.keys()].sort()).toEqual(['x/s30/TCP', ID]);
  });

  test('our own chains are refused: there is nothing to go on with', async () => {
    const harness = new Harness({ layout });
    harness.kernel.fault = refusing('KUBE-MARK-MASQ');
    await expect(harness.sync(...services(3))).rejects.toThrow('refused');
  });
});
