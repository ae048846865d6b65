import { describe, expect, test } from 'vitest';
import { timestampSource, printTime } from '../../../src/telemetry/http/timestamp.ts';

describe('a time in print', () => {
  test.each([
    [1_794_713_739_537_331_770n, 0, '2026-11-15T03:35:39.53733177Z', 'trailing zeros are cut'],
    [1_794_713_739_000_000_000n, 0, '2026-11-15T03:35:39Z', 'no fraction, no point'],
    [1_794_713_739_000_000_001n, 0, '2026-11-15T03:35:39.000000001Z', 'to the nanosecond'],
    [1_794_713_739_500_000_000n, 60, '2026-11-15T04:35:39.5+01:00', 'east'],
    [1_794_713_739_500_000_000n, -210, '2026-11-15T00:05:39.5-03:30', 'west'],
  ])('%d at %d is %s (%s)', (wallNs, zone, expected) => {
    expect(printTime({ wallNs, steadyNs: 0n }, zone)).toBe(expected);
  });

  test('in the zone of the process by default', () => {
    const zone = -new Date(1_794_713_739_000).getTimezoneOffset();
    const moment = { wallNs: 1_794_713_739_000_000_000n, steadyNs: 0n };
    expect(printTime(moment)).toBe(printTime(moment, zone));
  });
});

describe('the time of the wall', () => {
  const at = (wallMs: number, steadyNs: bigint) => ({ wallMs, steadyNs });
  let now = at(1000, 500n);
  const read = timestampSource(
    () => now.wallMs,
    () => now.steadyNs,
  );

  test('is carried on by the steady clock', () => {
    expect(read().wallNs).toBe(1_000_000_000n);
    now = at(1000, 400_500n);
    expect(read()).toEqual({ wallNs: 1_000_400_000n, steadyNs: 400_500n });
    now = at(1001, 1_200_500n);
    expect(read().wallNs).toBe(1_001_200_000n);
  });

  test('follows when somebody sets the clock', () => {
    now = at(50_000, 2_000_500n);
    expect(read().wallNs).toBe(50_000_000_000n);
    now = at(7, 3_000_500n);
    expect(read()).toEqual({ wallNs: 7_000_000n, steadyNs: 3_000_500n });
  });
});
