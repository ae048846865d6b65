import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readSavedRulesets } from '../../src/doctor/machine.ts';
import { checkSavedRulesets } from '../../src/doctor/savedRulesets.ts';
import { groupOf } from './fakeMachine.ts';

const folder = mkdtempSync(join(tmpdir(), 'junction-rulesets-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = (name: string): string => join(folder, name);

test('our tables in files of nftables.service, also in those that they include', async () => {
  writeFileSync(
    path('nftables.conf'),
    `flush ruleset
include "${folder}/*.nft"
include "${folder}/not-there"
table inet firewall {
  chain input { type filter hook input priority 0; }
}
table ip6 junction-others { }
`,
  );
  writeFileSync(path('1.nft'), `include "${folder}/nftables.conf"\ntable ip junction-a {\n}\n`);
  writeFileSync(path('2.txt'), 'table ip junction-a {\n}\n');
  const rulesets = readSavedRulesets([path('none'), path('nftables.conf')]);
  expect(rulesets.map((each) => each.path)).toEqual([path('nftables.conf'), path('1.nft')]);
  const { findings } = await groupOf((group) => checkSavedRulesets(group, { savedRulesets: () => rulesets }));
  expect(findings).toEqual([
    expect.objectContaining({
      code: 'our-table-in-saved-ruleset',
      text: `${path('1.nft')} contains Junction's nftables tables`,
      evidence: 'line 2: table ip junction-a',
    }),
  ]);
});

test('rulesets of others are fine', async () => {
  const savedRulesets = () => [
    { path: '/etc/nftables.conf', text: 'flush ruleset\ntable inet filter {\n}\n' },
  ];
  expect(await groupOf((group) => checkSavedRulesets(group, { savedRulesets }))).toMatchObject({
    findings: [],
    fine: ['no saved ruleset contains our tables'],
  });
});
