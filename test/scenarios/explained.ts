/** What explain says of a scenario's packets, with what was read from a real kernel for each. */
import type { FamilySubject, Subject } from '../../src/explain/subject.ts';
import { explainPacket } from '../../src/explain/packet.ts';
import type { Family } from '../../src/model/ip.ts';
import type { ModeName } from '../../src/model/mode.ts';
import type { WalkResult } from '../../src/modes/kernelRules.ts';
import { fateOf } from '../explain/fate.ts';
import { familySubject, NOW } from '../explain/given.ts';
import { printRow, type Row } from './packets.ts';
import { NODE1, proxyOf, type Scenario } from './scenario.ts';

interface Walked {
  readonly row: Row;
  readonly result: WalkResult;
}

/** Each row with its fate; where the kernel is not as planned, with the difference instead. */
export async function explainedRows(
  mode: ModeName,
  scenario: Scenario,
  walked: readonly Walked[],
): Promise<readonly string[]> {
  const plans = new Map<Family, ReturnType<typeof proxyOf>>();
  const texts: string[] = [];
  for (const { row, result } of walked) {
    let proxy = plans.get(row.family);
    if (!proxy) {
      plans.set(row.family, (proxy = proxyOf(row.family, scenario, NO_WRITER)));
      proxy.replan();
    }
    const nothing = (): Promise<never[]> => Promise.resolve([]);
    const kernel = { walk: () => Promise.resolve(result), compare: nothing, dump: nothing };
    const family: FamilySubject = familySubject(proxy, NODE1, kernel);
    const subject: Subject = {
      nodeName: 'node1',
      mode,
      layout: 'current',
      families: [family],
      now: () => NOW,
    };
    const answer = await explainPacket(subject, { family, packet: row.packet });
    const { differences = ['the kernel was not asked'] } = answer.kernel ?? {};
    texts.push(printRow(row, differences[0] ?? fateOf(answer, row)));
  }
  return texts;
}

const NO_WRITER = {
  sync: () => Promise.reject(new Error('nothing is written')),
  requestFull: (): void => {},
};
