import { afterAll, beforeAll } from 'vitest';
import { whyNoLab } from '../../../lab/privileges.ts';

/** Made before the tests of a `describe`, closed after them; not made where there can be no lab to put it in. */
export function useInLab<T extends { close(): Promise<void> }>(make: () => Promise<T>): () => T {
  let made: T | undefined;
  beforeAll(async () => {
    if (whyNoLab() === undefined) made = await make();
  });
  afterAll(async () => {
    await made?.close();
  });
  return () => {
    if (made === undefined) throw new Error('not made yet');
    return made;
  };
}
