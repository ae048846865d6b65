import { describe, expect, test } from 'vitest';
import { match, rule, target } from '../../../src/modes/iptables/rules/layouts/common.ts';
import { JunctionError } from '../../../src/errors.ts';
import { tryRules } from '../../../src/modes/iptables/ruleTrial.ts';
import { FakeIptables, type FakeIptablesOptions } from './fakeIptables.ts';

const plain = rule([match.comment('x')], target.accept);
const local = rule([match.toLocal], target.accept);
const recent = rule([{ kind: 'recentSet', name: 'X' }], target.accept);
const refuse = rule([], target.reject);
const RULES = [plain, local, recent, refuse];

const VARIANTS: readonly (readonly [string, FakeIptablesOptions])[] = [
  ['nft', { variant: 'nft' }],
  ['legacy', { variant: 'legacy' }],
  ['an nft that names no lines', { variant: 'nft', namesNoLines: true }],
];

describe.each(VARIANTS)('%s', (_, variant) => {
  test('all accepted, and nothing stays', async () => {
    const iptables = new FakeIptables(variant);
    expect(await tryRules(iptables, 'nat', RULES)).toEqual({ state: 'tried', refused: new Map() });
    expect([...iptables.chains]).toEqual([]);
  });

  test('those that the kernel refuses are found, and nothing stays', async () => {
    const iptables = new FakeIptables({ ...variant, refuses: ['-m recent', '-j REJECT'] });
    const trial = await tryRules(iptables, 'filter', RULES);
    expect(trial.state === 'tried' && [...trial.refused.keys()]).toEqual([recent, refuse]);
    expect([...iptables.chains]).toEqual([]);
  });

  test('one for which the program has no library', async () => {
    const iptables = new FakeIptables({ ...variant, lacksLibrary: ['-m recent'] });
    const trial = await tryRules(iptables, 'filter', RULES);
    expect(trial).toEqual({
      state: 'tried',
      refused: new Map([[recent, expect.stringContaining("Couldn't load match `recent'")]]),
    });
    expect([...iptables.chains]).toEqual([]);
  });

  test('a table that is not there', async () => {
    const iptables = new FakeIptables({ ...variant, lacksTables: ['nat'] });
    expect(await tryRules(iptables, 'nat', RULES)).toEqual({
      state: 'noTable',
      reason: expect.stringContaining("unable to initialize table 'nat'"),
    });
  });

  test('the lock is another matter', async () => {
    const error = new JunctionError('XTABLES_LOCK_HELD', 'held by firewalld');
    expect(await tryRules(new FakeIptables({ ...variant, error }), 'nat', RULES)).toEqual({
      state: 'failed',
      error,
    });
  });
});

test('the nft variant looks once, and writes nothing at all', async () => {
  const iptables = new FakeIptables({ variant: 'nft', refuses: ['-m recent'] });
  await tryRules(iptables, 'nat', RULES);
  expect(iptables.inputs).toEqual([
    [
      '*nat',
      ':POSTROUTING - [0:0]',
      ':KUBE-JUNCTION-TRIAL - [0:0]',
      '-A KUBE-JUNCTION-TRIAL -m comment --comment x -j ACCEPT',
      '-A KUBE-JUNCTION-TRIAL -m addrtype --dst-type LOCAL -j ACCEPT',
      '-A KUBE-JUNCTION-TRIAL -m recent --name X --set -j ACCEPT',
      '-A KUBE-JUNCTION-TRIAL -j REJECT',
      '-X KUBE-JUNCTION-TRIAL',
      'COMMIT',
      '',
    ].join('\n'),
  ]);
});

test('legacy writes once and removes once, along with what a killed run has left', async () => {
  const iptables = new FakeIptables({ variant: 'legacy' });
  iptables.chains.set('nat KUBE-JUNCTION-TRIAL', ['-A KUBE-JUNCTION-TRIAL -j ACCEPT']);
  await tryRules(iptables, 'nat', RULES);
  expect(iptables.inputs).toHaveLength(2);
  expect([...iptables.chains]).toEqual([]);
});

test('nor does it where every rule is refused, so that nothing stands in the way of the deletion', async () => {
  const iptables = new FakeIptables({ variant: 'nft', refuses: ['-m recent'] });
  expect(await tryRules(iptables, 'nat', [recent])).toMatchObject({ state: 'tried' });
  expect(iptables.inputs).toHaveLength(1);
});
