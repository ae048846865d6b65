/** Every scenario: what explain says of a packet is its row's fate, and the rules in the kernel do as planned. */
import { describe, expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { explainPacket } from '../../src/explain/packet.ts';
import type { PacketExplanation } from '../../src/explain/types.ts';
import { SCENARIOS } from '../scenarios/cases/index.ts';
import { expectedIn } from '../scenarios/expectations.ts';
import { printRow, type Row } from '../scenarios/packets.ts';
import { proxyOf, type Scenario } from '../scenarios/scenario.ts';
import { fateOf } from './fate.ts';
import { MECHANISMS } from '../contract/memory.ts';
import { fakeMode, writtenSubject } from './mechanisms.ts';

const rowsOf = ({ rows }: Scenario, family: Family): readonly Row[] =>
  rows.filter((row) => row.family === family);

const CASES = SCENARIOS.flatMap((scenario) =>
  FAMILIES.filter((family) => rowsOf(scenario, family).length > 0).map((family) => ({
    name: scenario.name,
    scenario,
    family,
  })),
);

describe.each(MECHANISMS)('%s', (mechanism) => {
  test.each(CASES)('$name ($family)', async ({ scenario, family }) => {
    const mode = await fakeMode(mechanism, family);
    const proxy = proxyOf(family, scenario, mode.writer);
    await proxy.sync();
    const subject = await writtenSubject(mode, proxy);
    const [ofFamily] = subject.families;
    if (!ofFamily) throw new Error('no family');
    for (const row of rowsOf(scenario, family)) {
      const answer = await explainPacket(subject, { family: ofFamily, packet: row.packet });
      expect(printRow(row, fateOf(answer, row))).toBe(printRow(row, expectedIn(mechanism, proxy.plan, row)));
      expect({ row: row.text, ...answer.kernel }).toMatchObject({
        row: row.text,
        asPlanned: true,
        differences: [],
        notes: [],
      });
      expectWords(answer);
    }
  });
});

/** Every answer says why. */
function expectWords({ verdict, reason, findings, endpoints, leftOut, source }: PacketExplanation): void {
  expect(reason).not.toBe('');
  expect(source.why).not.toBe('');
  for (const { masqueradeReason } of endpoints) expect(masqueradeReason).not.toBe('');
  const sum = endpoints.reduce((total, { probability }) => total + probability, 0);
  expect(sum).toBeCloseTo(endpoints.length > 0 ? 1 : 0, 9);
  for (const { text } of leftOut) expect(text).not.toBe('');
  for (const { text, code } of findings) expect(`${code} ${text}`).not.toMatch(/undefined|\s\s/);
  if (verdict === 'rejected' || verdict === 'dropped') expect(`${findings.length} ${reason}`).not.toBe('0 ');
}
