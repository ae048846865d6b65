/** What real kernels, of both variants and families, show of rules that Junction prints. */
import { beforeEach, describe, expect, test } from 'vitest';
import { chainLine } from '../../../../src/modes/iptables/rules/print.ts';
import { ruleKey } from '../../../../src/modes/iptables/rules/words.ts';
import { parseSave } from './tables.ts';
import { type Command, askKernel, requireIptables, VARIANTS, type Variant } from './realKernel.ts';
import { type Sample, SAMPLES, toIpv6 } from './rules.ts';

const TABLES = ['filter', 'nat'] as const;

function chainOf(samples: readonly Sample[], sample: Sample): string {
  return `SAMPLE-${samples.indexOf(sample)}`;
}

/** Each sample in a chain of its own. */
function restoreText(samples: readonly Sample[]): string {
  return TABLES.map((table) => {
    const own = samples.filter((sample) => sample.table === table);
    const jumps = own.flatMap(({ rule }) => (rule.target?.kind === 'jump' ? [rule.target.chain] : []));
    const names = [...new Set([...own.map((sample) => chainOf(samples, sample)), ...jumps])];
    const rules = own.map((sample) => `-A ${chainOf(samples, sample)} ${sample.text}`);
    return [`*${table}`, ...names.map(chainLine), ...rules, 'COMMIT', ''].join('\n');
  }).join('');
}

const families: readonly (readonly [Command, readonly Sample[]])[] = [
  ['iptables', SAMPLES.filter((sample) => sample.needs === undefined)],
  ['ip6tables', SAMPLES.filter((sample) => sample.needs === undefined).map(toIpv6)],
];
const matrix: readonly (readonly [Command, Variant, readonly Sample[]])[] = families.flatMap(
  ([command, samples]) => VARIANTS.map((variant) => [command, variant, samples] as const),
);

describe.each(matrix)('%s-%s', (command, variant, samples) => {
  beforeEach((context) => requireIptables(context));

  test('shows every rule under the same key, and loads again what it showed', () => {
    const first = askKernel(command, variant, [restoreText(samples)]);
    expect(first).toMatchObject({ statuses: [0], complaints: '' });
    const saved = parseSave(first.save);
    const reprinted = samples.map((sample): Sample => {
      const rules = saved.get(sample.table)?.get(chainOf(samples, sample))?.rules ?? [];
      expect(rules.map(({ key }) => key)).toEqual([ruleKey(sample.text)]);
      return { ...sample, text: rules[0]?.text ?? sample.text };
    });
    const second = askKernel(command, variant, [restoreText(reprinted)]);
    expect(second).toMatchObject({ statuses: [0], complaints: '' });
    expect(withoutDates(second.save)).toBe(withoutDates(first.save));
  });
});

function withoutDates(save: string): string {
  return save.replaceAll(/^#.*$/gm, '');
}
