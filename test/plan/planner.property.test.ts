/** However it came about, a plan is what a new planner would make of the same cluster. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Ip } from '../../src/model/ip.ts';
import { type Protocol, PROTOCOLS } from '../../src/model/objects.ts';
import type { Plan, ServicePortPlan } from '../../src/plan/types.ts';
import { Cluster } from './cluster.ts';
import { ip } from './given.ts';
import { anyServiceLine, anySliceLine } from './anyCluster.ts';

const ADDRESSES: readonly (Ip | undefined)[] = [
  undefined,
  ...['10.96.0.1', '10.96.0.2', '10.96.0.3', '1.1.1.1', '2.2.2.2'].map(ip),
];
const PORTS = [80, 81, 53, 30080, 30081];

function everyFrontend(plan: Plan): readonly string[] {
  const find = (address: Ip | undefined, protocol: Protocol, port: number): string => {
    const found = plan.find(address, protocol, port);
    return `${address ?? '*'} ${protocol} ${port}: ${found ? `${found.servicePort.id} ${JSON.stringify(found.frontend)}` : '-'}`;
  };
  return ADDRESSES.flatMap((address) =>
    PROTOCOLS.flatMap((protocol) => PORTS.map((port) => find(address, protocol, port))),
  );
}

function sorted(plan: Plan): unknown {
  return [...plan.servicePorts].sort(([a], [b]) => (a < b ? -1 : 1));
}

const line = fc.oneof(
  { weight: 3, arbitrary: anyServiceLine },
  { weight: 3, arbitrary: anySliceLine },
  {
    weight: 2,
    arbitrary: fc.constantFrom('a/x', 'a/y', 'b/z', 'a/x-1', 'a/y-1', 'b/z-1').map((path) => `- ${path}`),
  },
  { weight: 2, arbitrary: fc.constant('sync') },
);

test('after any number of changes', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), (lines) => {
      const lived = new Cluster();
      const final = new Map<string, string>();
      for (const text of lines) {
        if (text === 'sync') {
          const before = new Map(lived.planner.servicePorts);
          for (const change of lived.replan()) {
            expect(change.previous).toEqual(before.get(change.id));
            expect(change.current).toEqual(lived.planner.servicePorts.get(change.id));
            before.delete(change.id);
          }
          for (const [id, plan] of before) expect(lived.planner.servicePorts.get(id)).toEqual(plan);
          continue;
        }
        lived.tell(text);
        const path = text.replace(/^- /, '').split(' ')[0] ?? '';
        if (text.startsWith('- ')) final.delete(path);
        else final.set(path, text);
      }
      lived.replan();
      const fresh = new Cluster();
      fresh.tell(...final.values()).replan();
      expect(sorted(lived.planner)).toEqual(sorted(fresh.planner));
      expect(lived.planner.endpointCount).toBe(fresh.planner.endpointCount);
      expect(everyFrontend(lived.planner)).toEqual(everyFrontend(fresh.planner));
      for (const address of ADDRESSES) {
        if (address === undefined) continue;
        const isThere = ({ frontends }: ServicePortPlan): boolean =>
          frontends.some((frontend) => frontend.address === address);
        const there = [...fresh.planner.servicePorts.values()].filter(isThere);
        expect(new Set(Array.from(lived.planner.portsAt(address), ({ id }) => id))).toEqual(
          new Set(there.map(({ id }) => id)),
        );
      }
    }),
  );
});

test('every address has one owner, and it is one who asked for it', () => {
  fc.assert(
    fc.property(fc.array(anyServiceLine, { maxLength: 8 }), (lines) => {
      const made = new Cluster();
      made.tell(...lines).replan();
      const seen = new Map<string, string>();
      for (const port of made.planner.servicePorts.values()) {
        for (const { address, port: number } of port.frontends) {
          const key = `${address ?? '*'} ${port.protocol} ${number}`;
          expect(seen.get(key) ?? port.id).toBe(port.id);
          seen.set(key, port.id);
          expect(made.planner.find(address, port.protocol, number)?.servicePort).toBe(port);
        }
      }
    }),
  );
});
