import { describe, expect, test } from 'vitest';
import { type Locality, selectEndpoints, topologyMode } from '../../src/plan/servicePortPlan.ts';
import { endpoints, servicePort } from './given.ts';

const HERE: Locality = { nodeName: 'node-a', zone: 'a' };

/** The last number of each address: `10.0.0.1:80` is 1. */
function numbers(list: readonly { readonly ip: string }[]): string {
  return list.map((each) => each.ip.split('.').at(-1)).join(' ');
}

/** `1 local, 2 draining` for `10.0.0.1:80 local, 10.0.0.2:80 draining`. */
function short(text: string): string {
  return text.replaceAll(/(^|, )(\d+)/g, '$110.0.0.$2:80');
}

function select(port: string, list: string, here: Locality = HERE): string {
  const { cluster, local, hasAny } = selectEndpoints(
    servicePort(`a/b 10.96.0.1 ${port}`),
    endpoints(short(list)),
    here,
  );
  return `cluster ${numbers(cluster) || '-'}, local ${numbers(local) || '-'}, ${hasAny ? 'some' : 'none'}`;
}

const CLUSTER = '80@30080';
const ETP_LOCAL = '80@30080 etp=Local';
const ITP_LOCAL = '80 itp=Local';

describe('which endpoints serve', () => {
  const table: readonly (readonly [string, string, string, string])[] = [
    ['no endpoints at all', CLUSTER, '', 'cluster -, local -, none'],
    ['ready ones', CLUSTER, '1, 2, 3 unready', 'cluster 1 2, local -, some'],
    ['ready wins over draining', CLUSTER, '1, 2 draining', 'cluster 1, local -, some'],
    [
      'draining ones when nothing is ready',
      CLUSTER,
      '1 draining, 2 unready, 3 draining',
      'cluster 1 3, local -, some',
    ],
    ['serving, not ready, not terminating never counts', CLUSTER, '1 starting', 'cluster -, local -, none'],
    [
      'ready without serving, as published addresses are',
      CLUSTER,
      '1 published, 2 draining',
      'cluster 1, local -, some',
    ],

    ['ETP Local: both pools', ETP_LOCAL, '1 local, 2, 3 local', 'cluster 1 2 3, local 1 3, some'],
    ['ETP Local: only draining here', ETP_LOCAL, '1 local draining, 2', 'cluster 2, local 1, some'],
    ['ETP Local: draining elsewhere', ETP_LOCAL, '1 local unready, 2 draining', 'cluster 2, local -, some'],
    [
      'ETP Local on a service without a way in from outside',
      '80 etp=Local',
      '1 local, 2',
      'cluster 1 2, local -, some',
    ],
    [
      'ITP Local: draining elsewhere still counts as some',
      ITP_LOCAL,
      '1 draining',
      'cluster -, local -, some',
    ],
    [
      'ITP Local with a node port: both pools',
      '80@30080 itp=Local',
      '1 local, 2',
      'cluster 1 2, local 1, some',
    ],
  ];
  test.each(table)('%s', (_, port, list, expected) => expect(select(port, list)).toBe(expected));
});

describe('hints', () => {
  const table: readonly (readonly [string, string, string, string])[] = [
    [
      'all hinted, some for this zone',
      CLUSTER,
      '1 zone=a, 2 zone=b, 3 zone=a,b',
      'cluster 1 3, local -, some',
    ],
    [
      'one of four without a hint',
      CLUSTER,
      '1 zone=a, 2 zone=b, 3, 4 zone=a',
      'cluster 1 2 3 4, local -, some',
    ],
    [
      "an unready one's hint, or lack of it, is irrelevant",
      CLUSTER,
      '1 zone=a, 2 zone=b, 3 unready',
      'cluster 1, local -, some',
    ],
    ['none for this zone', CLUSTER, '1 zone=b, 2 zone=c', 'cluster 1 2, local -, some'],
    [
      'hints do not filter draining ones',
      CLUSTER,
      '1 draining zone=a, 2 draining zone=b',
      'cluster 1 2, local -, some',
    ],
    ['hints never filter the local pool', ETP_LOCAL, '1 local zone=b, 2 zone=a', 'cluster 2, local 1, some'],
    [
      'node hints come first',
      CLUSTER,
      '1 node=node-a zone=b, 2 node=node-b zone=a',
      'cluster 1, local -, some',
    ],
    [
      'no node hint for this node: zone hints',
      CLUSTER,
      '1 node=node-b zone=a, 2 node=node-c zone=b',
      'cluster 1, local -, some',
    ],
    ['one without any hint: no filter', CLUSTER, '1 node=node-a zone=a, 2', 'cluster 1 2, local -, some'],
  ];
  test.each(table)('%s', (_, port, list, expected) => expect(select(port, list)).toBe(expected));

  test.each([
    ['a', 'same-zone'],
    ['b', 'none'],
    ['', 'none'],
    [undefined, 'none'],
  ])('a node in zone %j: %s', (zone, expected) => {
    const hinted = endpoints(short('1 zone=a, 2 zone=c'));
    expect(topologyMode(hinted, { nodeName: 'node-a', zone })).toBe(expected);
  });

  test('nothing ready: no topology', () => expect(topologyMode([], HERE)).toBe('none'));

  test('a node without a name has no node hints', () => {
    const hinted = endpoints(short('1 node=node-a'));
    expect(topologyMode(hinted, { nodeName: '', zone: 'a' })).toBe('none');
  });
});
