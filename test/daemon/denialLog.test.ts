import { expect, test } from 'vitest';
import { type Denial, DenialLog } from '../../src/daemon/unserved.ts';
import { createLog } from '../../src/log/log.ts';
import { FakeClock } from '../time/fakeClock.ts';

const DENIAL: Denial = { key: '203.0.113.1/TCP/80', owner: 'shop/old:http' };

function made(denied: (id: string) => readonly Denial[], clock = new FakeClock()) {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  return {
    lines,
    clock,
    log: new DenialLog({ denied, clock, log: createLog({ verbosity: 0, format: 'json', write }) }),
  };
}

test('each service port has one line, once', async () => {
  const { log, lines, clock } = made((id) =>
    id === 'a' ? [DENIAL, { ...DENIAL, key: '203.0.113.2/TCP/80' }] : [],
  );
  for (const ids of [['a', 'b'], ['a']]) {
    const reported = log.report(ids);
    await clock.advance(0);
    await reported;
  }
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({
      servicePort: 'a',
      address: DENIAL.key,
      servedBy: DENIAL.owner,
      moreAddresses: 1,
    }),
  ]);
});

test('of many that come at once, the first are named and the others counted', async () => {
  const { log, lines, clock } = made(() => [DENIAL]);
  const reported = log.report(Array.from({ length: 2000 }, (_, index) => `s${index}`));
  await clock.advance(0);
  await reported;
  expect(lines).toHaveLength(21);
  expect(JSON.parse(lines[20] ?? '')).toMatchObject({ servicePorts: 1980 });
});

test('thousands are looked at in slices of time, each of them once', async () => {
  const clock = new (class extends FakeClock {
    worked = 0;
    override now(): number {
      return super.now() + this.worked;
    }
  })();
  let asked = 0;
  const { log } = made(() => {
    asked++;
    clock.worked += 1;
    return [];
  }, clock);
  const told = log.report(Array.from({ length: 100 }, (_, index) => `s${index}`));
  expect(asked).toBeLessThan(25);
  void log.report(['s99', 'later']);
  for (let turn = 0; turn < 20; turn++) await clock.advance(0);
  await told;
  expect(asked).toBe(101);
});
