/** Each mode over its stand-in for the kernel: a proxy that writes there, and a reader for questions. */
import type { Family } from '../../src/model/ip.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import type { KernelReader } from '../../src/modes/kernelRules.ts';
import type { KernelWriter, Proxier } from '../../src/proxy/proxier.ts';
import type { Subject } from '../../src/explain/subject.ts';
import { memorySide, modeOf } from '../contract/memory.ts';
import { NODE1 } from '../scenarios/scenario.ts';
import { familySubject, NOW } from './given.ts';

export interface FakeMode {
  readonly mechanism: Mechanism;
  readonly writer: KernelWriter;
  /** What is in the kernel by then. */
  reader(): Promise<KernelReader>;
}

export async function fakeMode(mechanism: Mechanism, family: Family): Promise<FakeMode> {
  const side = memorySide(mechanism, family);
  return { mechanism, writer: await side.start(), reader: () => side.reader() };
}

/** Of a proxy that has written. */
export async function writtenSubject(mode: FakeMode, proxy: Proxier): Promise<Subject> {
  const { mechanism } = mode;
  return {
    nodeName: 'node1',
    mode: modeOf(mechanism),
    layout: mechanism === 'classic' ? 'classic' : 'current',
    families: [familySubject(proxy, NODE1, await mode.reader())],
    now: () => NOW,
  };
}
