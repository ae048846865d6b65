import { describe, expect, test } from 'vitest';
import { capabilityCheck, hasCapability } from '../../../src/modes/prerequisites/capabilities.ts';
import {
  absent,
  type Check,
  present,
  readinessOf,
  summary,
  unknown,
} from '../../../src/modes/prerequisites/check.ts';
import { moduleRemedy, offerWithModule } from '../../../src/modes/prerequisites/pieces.ts';
import { fakeMachine } from './fakeMachine.ts';

const good = present('a', 'always', 'there');
const gone = absent('b', 'always', 'not there', 'bring it');
const partly = absent('c', 'for c', 'not there', 'bring it');
const untried = unknown('d', 'always', 'not tried', 'try again');
const untriedExtra = unknown('e', 'for e', 'not tried', 'try again');

describe('what checks come to', () => {
  test.each<readonly [readonly Check[], string, string]>([
    [[good], 'yes', 'x mode can run here.'],
    [[good, partly], 'yes', 'x mode can run here; 1 thing is only partly there.'],
    [[good, untriedExtra], 'yes', 'x mode can run here; 1 thing was not tried.'],
    [[good, untried], 'unclear', 'whether x mode can run here is not clear; 1 thing was not tried.'],
    [[gone, good], 'no', 'x mode cannot run here: 1 thing is missing.'],
    [
      [gone, gone, partly, partly],
      'no',
      'x mode cannot run here: 2 things are missing; 2 things are only partly there.',
    ],
  ])('%#', (checks, verdict, text) => {
    expect(readinessOf(checks)).toBe(verdict);
    expect(summary('x', checks)).toBe(text);
  });
});

describe('capabilities', () => {
  const status = (effective: string): string =>
    `Name:\tnode\nCapInh:\t0\nCapEff:\t${effective}\nCapBnd:\t0\n`;

  test('are read from the set that is in force', () => {
    expect(hasCapability(status('0000000000001000'), 'NET_ADMIN')).toBe(true);
    expect(hasCapability(status('0000000000001000'), 'SYS_MODULE')).toBe(false);
    expect(hasCapability(status('000001ffffffffff'), 'SYS_MODULE')).toBe(true);
    expect(hasCapability(status('000001ffffffefff'), 'NET_ADMIN')).toBe(false);
    expect(hasCapability('', 'NET_ADMIN')).toBe(false);
  });

  test('not being able to load modules is a note, no fault', () => {
    expect(capabilityCheck(status('0000000000001000'))).toMatchObject({
      state: 'present',
      found: expect.stringContaining('not load kernel modules'),
    });
  });
});

describe('a module', () => {
  test('with its packages, where modules are in sight', () => {
    expect(moduleRemedy(fakeMachine(), ['ip_vs'])).toBe(
      'modprobe ip_vs. If it is not found, linux-modules-extra-6.1.0-18-amd64 (Ubuntu) or kernel-modules-extra (RHEL, Fedora) may have it; else this kernel is built without it.',
    );
  });

  test('from the node, where they are not', () => {
    expect(moduleRemedy(fakeMachine({ moduleFolder: false }), ['a', 'b'])).toMatch(
      /^On the node: modprobe -a a b\. Or mount the node's \/lib\/modules into the container, read-only/,
    );
  });

  test('is loaded only if it is missing', async () => {
    const machine = fakeMachine();
    expect(await offerWithModule(machine, 'dummy', () => machine.tryLink('dummy'))).toEqual({
      state: 'done',
    });
    expect(machine.trials).toEqual(['link of kind dummy']);
  });

  test('that modprobe brings is there', async () => {
    const machine = fakeMachine({ unloaded: ['dummy'] });
    expect(await offerWithModule(machine, 'dummy', () => machine.tryLink('dummy'))).toEqual({
      state: 'done',
    });
    expect(machine.trials).toEqual(['link of kind dummy', 'modprobe dummy', 'link of kind dummy']);
  });

  test('that modprobe does not have: the words of the kernel and of modprobe', async () => {
    const machine = fakeMachine({ modules: ['dummy'] });
    expect(await offerWithModule(machine, 'dummy', () => machine.tryLink('dummy'))).toEqual({
      state: 'refused',
      reason: 'EOPNOTSUPP; modprobe: FATAL: Module dummy not found',
    });
  });

  test('that is loaded and does not help', async () => {
    const refused = { state: 'refused', reason: 'EPERM' } as const;
    expect(await offerWithModule(fakeMachine(), 'dummy', () => refused)).toEqual({
      state: 'refused',
      reason: 'EPERM, though the module dummy is loaded',
    });
  });
});
