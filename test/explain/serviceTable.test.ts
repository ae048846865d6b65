/** Lines of services that are kept between questions are those that a fresh look would give. */
import { describe, expect, test } from 'vitest';
import { serviceRows } from '../../src/explain/rows.ts';
import { SERVICE_COLUMNS, serviceLine, ServiceLines } from '../../src/explain/serviceTable.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { ServiceRow } from '../../src/explain/types.ts';
import type { Ip } from '../../src/model/ip.ts';
import { ChangeHistory } from '../../src/proxy/history.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { SETTINGS } from '../plan/given.ts';
import { FakeWriter } from '../proxy/fakes.ts';
import { tell } from '../proxy/given.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { familySubject } from './given.ts';

const ROW: ServiceRow = {
  service: 'shop/web',
  type: 'LoadBalancer',
  clusterIPs: ['10.96.0.1' as Ip, 'fd00::1' as Ip],
  externalIPs: ['192.0.2.1' as Ip],
  loadBalancerIPs: ['203.0.113.1' as Ip],
  ports: ['80:30080/TCP', '53/UDP'],
  endpoints: { ready: 1, local: 1, all: 3 },
  externalTrafficPolicy: 'Local',
  internalTrafficPolicy: 'Local',
  affinitySeconds: 60,
  rate: 1.25,
  state: 'refused',
  detail: 'No space\tleft\non device',
};

test('a row as cells', () => {
  const cells = serviceLine(ROW).split('\t');
  expect(Object.fromEntries(SERVICE_COLUMNS.map((title, index) => [title, cells[index]]))).toEqual({
    SERVICE: 'shop/web',
    TYPE: 'LoadBalancer',
    'CLUSTER IP': '10.96.0.1,fd00::1',
    'OTHER IPS': '203.0.113.1,192.0.2.1',
    PORTS: '80:30080/TCP,53/UDP',
    READY: '1/3 (1 here)',
    POLICY: 'external Local, internal Local',
    AFFINITY: '60s',
    'CONN/S': '1.3',
    STATE: 'refused: No space left on device',
  });
  expect(cells).toHaveLength(SERVICE_COLUMNS.length);
});

describe('kept lines', () => {
  function make() {
    const clock = new FakeClock();
    const history = new ChangeHistory({ family: 'IPv4', clock, wallTime: () => 0, nextId: () => 1 });
    const proxy = new Proxier({ family: 'IPv4', settings: SETTINGS, writer: new FakeWriter(), history });
    proxy.onSynced();
    const refused = new Map<string, string>();
    const family = { ...familySubject(proxy, { addresses: [] }), refused };
    const subject: Subject = {
      nodeName: 'node-a',
      mode: 'iptables',
      layout: 'current',
      families: [family],
      now: () => 0,
    };
    const lines = new ServiceLines();
    const kept = (namespace?: string): readonly string[] =>
      [...lines.of(subject, history.takeChanged(), namespace)].filter(Boolean);
    const fresh = (): readonly string[] =>
      Array.from(serviceRows(subject), (row) => `${serviceLine(row)}\n`).sort();
    return { proxy, kept, fresh, refused };
  }

  test('after each change', async () => {
    const { proxy, kept, fresh, refused } = make();
    const steps: readonly (readonly string[])[] = [
      ['shop/web 10.96.0.1 80', 'shop/web-1 of web 80 | 10.244.0.1 node-a', 'shop/db 10.96.0.2 5432'],
      ['shop/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.2 node-b'],
      ['shop/db-1 of db 5432 | 10.244.0.3 node-b'],
      ['shop/web-1 of web 80 | 10.244.0.1 node-a'],
      ['bank/db 10.96.0.3 5432', 'shop/web 10.96.0.1 81'],
    ];
    for (const step of steps) {
      tell(proxy, ...step);
      await proxy.sync();
      expect(kept()).toEqual(fresh());
      expect(kept()).toEqual(fresh());
    }
    expect(kept()).toHaveLength(3);
    expect(kept('bank')).toHaveLength(1);
    proxy.onService('shop/db', undefined);
    await proxy.sync();
    expect(kept()).toEqual(fresh());
    expect(kept()).toHaveLength(2);
    refused.set('shop/web/TCP', 'No space left');
    expect(kept()).toEqual(fresh());
    refused.clear();
    expect(kept()).toEqual(fresh());
  });

  test('of many services, in order', async () => {
    const { proxy, kept, fresh } = make();
    const names = Array.from({ length: 3500 }, (_, index) => `shop/web-${(index * 7919) % 3500}`);
    for (const [index, name] of names.entries()) tell(proxy, `${name} 10.96.${index >> 8}.${index & 255} 80`);
    await proxy.sync();
    expect(kept()).toHaveLength(3500);
    expect(kept()).toEqual(fresh());
    tell(proxy, 'shop/aaa 10.97.0.1 80');
    await proxy.sync();
    expect(kept()).toEqual(fresh());
  });
});
