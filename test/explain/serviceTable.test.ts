/** Rows of services as cells. */
import { expect, test } from 'vitest';
import { SERVICE_COLUMNS, serviceLine } from '../../src/explain/serviceTable.ts';
import type { ServiceRow } from '../../src/explain/types.ts';
import type { Ip } from '../../src/model/ip.ts';

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
    STATE: 'refused: No space left on device',
  });
  expect(cells).toHaveLength(SERVICE_COLUMNS.length);
});
