/** Others get their turn while one service port with thousands of endpoints is compared. */
import { expect, test } from 'vitest';
import { FakeKernel } from './fakeKernel.ts';
import { Harness } from './harness.ts';

class BreathingKernel extends FakeKernel {
  asked = 0;
  readonly timeSlice = {
    begin: (): void => undefined,
    pause: (): undefined => void this.asked++,
  };
}

test('between compiling it as it was, as it is, and comparing the two', async () => {
  const kernel = new BreathingKernel();
  const harness = new Harness({ kernel });
  const endpoints = Array.from({ length: 1500 }, (_, index) => `| 10.244.${index >> 8}.${index & 255}`);
  await harness.sync('a/x 10.96.0.1 80', `a/x-1 of x 80 ${endpoints.join(' ')}`);
  kernel.asked = 0;
  const report = await harness.sync(`a/x-1 of x 80 ${endpoints.slice(1).join(' ')}`);
  expect(kernel.asked).toBe(3);
  // The endpoint's own chain goes, and of the others the chain that draws one of them is written: nothing else.
  expect(report).toMatchObject({ kind: 'incremental', commits: 1, counts: { chains: 2 } });
});
