import { expect, test } from 'vitest';
import { FaultLog } from '../../src/daemon/faultLog.ts';
import { countFault } from '../../src/faults.ts';
import { createLog } from '../../src/log/log.ts';
import { FakeClock } from '../time/fakeClock.ts';

test('each kind of fault is logged at once, and then at most once a minute with how many there were', async () => {
  const lines: string[] = [];
  const clock = new FakeClock();
  const log = createLog({
    verbosity: 0,
    format: 'text',
    write: (line) => lines.push(line.slice(line.indexOf(']') + 2)),
  });
  const faults = new FaultLog(log, clock);
  const OVERRUN = '"Netlink notifications were lost; reading everything again"';
  const FORGED = '"Netlink messages were dropped: their sender is another process, not the kernel"';
  countFault('netlink_overrun', 'first');
  countFault('program_timed_out');
  for (let count = 0; count < 1000; count++) countFault('netlink_overrun', `then ${count}`, 2);
  countFault('netlink_not_from_kernel', 'port id 7');
  expect(lines).toEqual([`${OVERRUN} count=1 detail="first"\n`, `${FORGED} count=1 detail="port id 7"\n`]);
  await clock.advance(60_000);
  expect(lines.slice(2)).toEqual([`${OVERRUN} count=2000 detail="then 999"\n`]);
  await clock.advance(120_000);
  expect(lines).toHaveLength(3);
  countFault('netlink_overrun', 'again');
  expect(lines).toHaveLength(4);
  faults.close();
  countFault('netlink_not_from_kernel', 'unheard');
  await clock.advance(120_000);
  expect(lines).toHaveLength(4);
});
