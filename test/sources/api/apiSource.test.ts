import { describe, expect, it } from 'vitest';
import { StatusError, type StreamingLists } from '../../support/apiServer/index.ts';
import { startHarness } from './harness.ts';
import { node, SHOP, service, serviceCidr, slice } from './objects.ts';

describe.each<{ readonly streamsLists: StreamingLists }>([
  { streamsLists: true },
  { streamsLists: false },
  { streamsLists: 'noWatchProgress' },
])('a cluster ($streamsLists)', ({ streamsLists }) => {
  it('is told once, then synced', async () => {
    const { told, settled, server } = await startHarness({ objects: SHOP, streamsLists });
    await settled();
    const lines = told();
    expect([...lines].sort()).toEqual([
      '+ EndpointSlice shop/web-1',
      '+ EndpointSlice shop/web-2',
      '+ Node node1',
      '+ Service shop/db',
      '+ Service shop/web',
      'synced',
    ]);
    expect(lines.at(-1)).toBe('synced');
    expect(server.count('list')).toBe(streamsLists === true ? 0 : 3);
    expect(server.count('stream')).toBe(3);
  });

  it('is followed', async () => {
    const { told, settled, server } = await startHarness({ objects: SHOP, streamsLists });
    await settled();
    told();
    server.put(
      service('new', { clusterIP: '10.96.0.13' }),
      slice('web-1', ['10.0.0.9']),
      node('node1', 'zone-b'),
    );
    server.put(node('node2', 'zone-c'), slice('web-2', ['10.0.0.3']));
    server.delete('Service', 'shop/db');
    // It comes into, or leaves, what the selectors let through.
    server.put(service('headless', { clusterIP: '10.96.0.14' }), service('web', { clusterIP: 'None' }));
    await settled();
    expect([...told()].sort()).toEqual([
      '+ Service shop/headless',
      '+ Service shop/new',
      '- Service shop/db',
      '- Service shop/web',
      '~ EndpointSlice shop/web-1',
      '~ Node node1',
    ]);
  });
});

describe('ServiceCIDRs', () => {
  it('are told whole, after the list and after each change', async () => {
    const objects = [
      ...SHOP,
      serviceCidr('a', ['10.96.0.0/16', 'fd00::/112']),
      serviceCidr('b', ['10.96.0.0/16']),
    ];
    const { told, settled, server, until } = await startHarness({ objects, withServiceCIDRs: true });
    await settled();
    expect(told().filter((line) => line.startsWith('ServiceCIDRs'))).toEqual([
      'ServiceCIDRs 10.96.0.0/16 fd00::/112',
    ]);
    server.delete('ServiceCIDR', 'a');
    const lines: string[] = [];
    await until('the change is told', () => lines.push(...told()) > 0);
    expect(lines).toEqual(['ServiceCIDRs 10.96.0.0/16']);
  });

  it('are gone without where the server refuses them', async () => {
    const harness = await startHarness({
      objects: [...SHOP, serviceCidr('a', ['10.96.0.0/16'])],
      withServiceCIDRs: true,
    });
    const error = new StatusError(403, { reason: 'Forbidden' });
    const fault = { kind: 'status', error } as const;
    harness.server.faults.add({ on: 'any', resource: 'servicecidrs', fault, times: 6 });
    const lines: string[] = [];
    await harness.until('synced', () => lines.push(...harness.told()) > 0 && lines.includes('synced'));
    await harness.until('they are allowed', () => {
      lines.push(...harness.told());
      return lines.includes('ServiceCIDRs 10.96.0.0/16');
    });
    expect(lines.filter((line) => line === 'synced')).toHaveLength(1);
  });

  it('are none where the server does not know them', async () => {
    const { told, until } = await startHarness({
      objects: SHOP,
      withServiceCIDRs: true,
      without: ['servicecidrs'],
    });
    const lines: string[] = [];
    await until('synced', () => {
      lines.push(...told());
      return lines.includes('synced');
    });
    expect(lines).toContain('ServiceCIDRs ');
  });
});
