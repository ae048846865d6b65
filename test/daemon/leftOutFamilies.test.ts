import { expect, test } from 'vitest';
import type { FamilyAnswer } from '../../src/modes/familyState.ts';
import { LeftOutFamilies } from '../../src/daemon/leftOutFamilies.ts';
import { createLog } from '../../src/log/log.ts';
import { eventually } from '../e2e/support/eventually.ts';

const ABSENT: FamilyAnswer = { state: 'absent', reason: 'no table', remedy: '' };
const OPEN: FamilyAnswer = { state: 'unanswered', reason: 'the lock is held', remedy: '' };

test('a family is asked for until it works, and whatever is new is told', async () => {
  const answers: (FamilyAnswer | Error)[] = [ABSENT, new Error('boom'), OPEN, OPEN, { state: 'works' }];
  const told: string[] = [];
  let log = '';
  const families = new LeftOutFamilies({
    families: [{ family: 'IPv6', answer: ABSENT }],
    ask: async () => {
      const answer = answers.shift() ?? { state: 'works' };
      if (answer instanceof Error) throw answer;
      return answer;
    },
    onServed: (family) => told.push(`${family} works`),
    onAnswer: (family, { state }) => told.push(`${family} ${state}`),
    intervalMs: 1,
    log: createLog({
      verbosity: 0,
      format: 'text',
      write: (line) => {
        log += line;
      },
    }),
  });
  expect(families.get('IPv6')).toEqual(ABSENT);
  families.start();
  await eventually('it works', () => families.get('IPv6') === undefined);
  expect(told).toEqual(['IPv6 absent', 'IPv6 absent', 'IPv6 unanswered', 'IPv6 unanswered', 'IPv6 works']);
  expect(log.match(/still left out/g)).toHaveLength(1);
  expect(log).toContain('err="boom"');
  await families.stop();
});
