/** Whatever one tenant puts into objects of the API server's size limit, what is written of it has bounds. */
import { describe, expect, test } from 'vitest';
import { HOSTILE } from '../../bench/hostile/objects.ts';
import { currentLayout } from '../../src/modes/iptables/rules/layouts/current.ts';
import { compileVirtualServers } from '../../src/modes/ipvs/rules/compile.ts';
import { compileElements } from '../../src/modes/nftables/rules/compile.ts';
import { projectEndpointSlice } from '../../src/model/project/endpointSlice.ts';
import { projectService } from '../../src/model/project/service.ts';
import { capacityOf } from '../../src/plan/capacity.ts';
import type { Plan, ServicePortPlan } from '../../src/plan/types.ts';
import type { Family } from '../../src/model/ip.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeWriter } from '../proxy/fakes.ts';

const MODES = ['iptables', 'ipvs', 'nftables'] as const;
type ModeName = (typeof MODES)[number];

const SIZES: Readonly<Record<ModeName, (port: ServicePortPlan, plan: Plan) => number>> = {
  nftables: (port) => {
    const { elements, counted } = compileElements(port, { nodePortIps: [], counters: false });
    return elements.length + counted.length;
  },
  ipvs: (port) => {
    const options = { family: 'IPv4', scheduler: 'rr', nodePortIps: [], nodeIps: [] } as const;
    const { members, servers } = compileVirtualServers(port, options);
    return members.length + servers.reduce((sum, { destinations }) => sum + 1 + destinations.length, 0);
  },
  iptables: (port, { view }) => {
    const { chains, shared } = currentLayout.servicePort(port, {
      family: 'IPv4',
      view,
      nodePortIps: 'all',
      masqueradeMark: 0x4000,
      randomFully: true,
      dropInvalid: true,
      nfacct: { invalidDropped: false, localhostNodePorts: false },
      endpointComments: false,
    });
    return shared.length + chains.reduce((sum, { rules }) => sum + 1 + rules.length, 0);
  },
};

type Told = (proxy: Proxier) => void;

/** Objects as they are told; read once, for all modes. */
const told = new Map<string, readonly Told[]>();

function read(name: string): readonly Told[] {
  const raws = HOSTILE.find((each) => each.name === name)?.objects() ?? [];
  return raws.map((raw): Told => {
    if (raw.kind === 'Service') {
      const projection = projectService(raw);
      if (projection.kind !== 'object') throw new Error('not a Service');
      return (proxy) => proxy.onService(`default/${raw.metadata.name}`, projection.value);
    }
    const projection = projectEndpointSlice(raw);
    if (projection.kind !== 'object') throw new Error('not an EndpointSlice');
    return (proxy) => proxy.onEndpointSlice(`default/${raw.metadata.name}`, projection.value);
  });
}

/** In which it is large. */
function familyOf(name: string): Family {
  return name.startsWith('ipv6-') ? 'IPv6' : 'IPv4';
}

function planOf(name: string, mode: ModeName): Proxier {
  const writer = new FakeWriter();
  const family = familyOf(name);
  const capacity = capacityOf(mode, family);
  const proxy = new Proxier({ family, settings: SETTINGS, writer, capacity });
  let objects = told.get(name);
  if (!objects) told.set(name, (objects = read(name)));
  for (const tell of objects) tell(proxy);
  proxy.replan();
  return proxy;
}

/** Rules, chains, elements, virtual servers and their destinations. */
const MOST = 80_000;
const WITHIN_BOUNDS = new Set(['slices', 'rivals', 'health-checks']);

describe.each(MODES)('%s', (mode) => {
  test.each(HOSTILE.map(({ name }) => name))('%s', (name) => {
    const proxy = planOf(name, mode);
    const ports = [...proxy.plan.servicePorts.values()].filter(({ service }) => service === 'default/large');
    expect(ports.map((port) => port.name)).toContain('default/large:probe');
    const size = ports.reduce((sum, port) => sum + SIZES[mode](port, proxy.plan), 0);
    expect(size).toBeLessThanOrEqual(MOST);
    if (!WITHIN_BOUNDS.has(name)) expect(proxy.plan.cutsOf('default/large')).not.toEqual([]);
  });
});
