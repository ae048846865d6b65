import { describe, expect, it } from 'vitest';
import { atLeast, featuresOf, needsRestoreProbe, parseVersion } from '../../../src/modes/iptables/variant.ts';

describe('parseVersion', () => {
  it.each([
    ['iptables v1.8.9 (nf_tables)\n', '1.8.9', 'nft'],
    ['iptables v1.8.9 (legacy)\n', '1.8.9', 'legacy'],
    ['ip6tables v1.4.21\n', '1.4.21', 'legacy'],
    ['iptables v1.6.1', '1.6.1', 'legacy'],
  ])('%j is %s, %s', (output, text, variant) => expect(parseVersion(output)).toEqual({ text, variant }));

  it('is undefined where no version is named', () =>
    expect(parseVersion('command not found')).toBeUndefined());
});

describe('atLeast', () => {
  it.each([
    ['1.4.9', '1.4.11', false],
    ['1.4.11', '1.4.11', true],
    ['1.10', '1.8.9', true],
    ['1.6', '1.6.0', true],
    ['2.0', '1.8.9', true],
  ])('%s ≥ %s: %s', (version, minimum, expected) => expect(atLeast(version, minimum)).toBe(expected));
});

describe('features by version', () => {
  const limited = ['-w', '5'];
  const ownLocks = undefined;
  it.each([
    ['1.4.10', false, [], ownLocks, false],
    ['1.4.11', true, [], ownLocks, false],
    ['1.4.20', true, ['-w'], ownLocks, false],
    ['1.4.21', true, ['-w'], ownLocks, false],
    ['1.4.22', true, limited, ownLocks, false],
    ['1.6.1', true, limited, ownLocks, false],
    ['1.6.2', true, limited, limited, true],
    ['1.8.9', true, limited, limited, true],
  ] as const)('%s', (version, check, wait, restoreWait, randomFully) => {
    expect(featuresOf(version, false, 5)).toEqual({ check, wait, restoreWait, randomFully });
  });

  it('believes an old restore that knows --version to know -w', () => {
    expect(featuresOf('1.4.21', true, 5).restoreWait).toEqual(['-w']);
    expect(needsRestoreProbe('1.6.1')).toBe(true);
    expect(needsRestoreProbe('1.6.2')).toBe(false);
  });
});
