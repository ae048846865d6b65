/** Each mode over its stand-in for the kernel: a proxy that writes there, and a reader for questions. */
import type { Family } from '../../src/model/ip.ts';
import type { ModeName } from '../../src/model/mode.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import type { KernelReader } from '../../src/modes/kernelReader.ts';
import type { KernelWriter, Proxier } from '../../src/proxy/proxier.ts';
import type { Subject } from '../../src/explain/subject.ts';
import { fakeReader } from '../modes/iptables/fakeReader.ts';
import { readerOf } from '../modes/nftables/fakeSource.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { FakeIptables } from '../scenarios/fakeIptables.ts';
import { FakeIpvsNode } from '../scenarios/ipvsWalk.ts';
import { nftProxy } from '../scenarios/nftablesWalk.ts';
import { rulesWriter } from '../scenarios/rulesNode.ts';
import { NODE1 } from '../scenarios/scenario.ts';
import { familySubject, NOW } from './given.ts';

export const MECHANISMS: readonly Mechanism[] = ['current', 'classic', 'ipvs', 'nftables'];

export interface FakeMode {
  readonly mechanism: Mechanism;
  readonly writer: KernelWriter;
  /** What is in the kernel by then. */
  reader(): Promise<KernelReader>;
}

export async function fakeMode(mechanism: Mechanism, family: Family): Promise<FakeMode> {
  switch (mechanism) {
    case 'ipvs': {
      const node = new FakeIpvsNode(family);
      return { mechanism, writer: await node.proxier(), reader: () => node.reader() };
    }
    case 'nftables': {
      const kernel = new FakeNftKernel(family);
      return { mechanism, writer: nftProxy(family, kernel), reader: () => Promise.resolve(readerOf(kernel)) };
    }
    default: {
      const iptables = new FakeIptables();
      return {
        mechanism,
        writer: await rulesWriter(family, mechanism, iptables),
        reader: () => fakeReader(family, mechanism, iptables),
      };
    }
  }
}

const MODES: Readonly<Record<Mechanism, ModeName>> = {
  current: 'iptables',
  classic: 'iptables',
  ipvs: 'ipvs',
  nftables: 'nftables',
};

/** Of a proxy that has written. */
export async function writtenSubject(mode: FakeMode, proxy: Proxier): Promise<Subject> {
  const { mechanism } = mode;
  return {
    nodeName: 'node1',
    mode: MODES[mechanism],
    layout: mechanism === 'classic' ? 'classic' : 'current',
    families: [familySubject(proxy, NODE1, await mode.reader())],
    now: () => NOW,
  };
}
