import { describe, expect, test } from 'vitest';
import { type Flow, type FlowReview, reviewAll, reviewChanges } from '../../src/plan/flows.ts';
import type { NodeView } from '../../src/plan/types.ts';
import { runToEnd } from '../../src/time/timeSlice.ts';
import { Cluster, cluster } from './cluster.ts';
import { cidr, ip, VIEW } from './given.ts';

const LOCAL = [ip('192.0.2.10'), ip('198.51.100.7')];

/** `udp 10.96.0.10:53 > 10.244.0.3:53`: dialled, answered from. */
function flow(text: string): Flow {
  const [protocol = '', destination = '', , answerer = ''] = text.split(' ');
  const [address = '', port = ''] = destination.split(':');
  const [from = '', fromPort = ''] = answerer.split(':');
  return {
    protocol: protocol === 'sctp' ? 'SCTP' : 'UDP',
    destination: ip(address),
    destinationPort: Number(port),
    answerer: ip(from),
    answererPort: Number(fromPort),
  };
}

function questions({ questions: asked }: FlowReview): readonly string[] {
  return asked
    .map(({ protocol, address, port }) => `${protocol.toLowerCase()} ${address ?? '*'}:${port}`)
    .sort();
}

const SERVICE = 'kube/dns 10.96.0.10 dns:53/udp@30053 ext=203.0.113.5 lb=198.51.100.20';
const SLICE = 'kube/dns-1 of dns dns:5353/udp';
const WORLD = `${SERVICE}
  ${SLICE} | 10.244.0.3 node-a | 10.244.1.3 node-b
  kube/log 10.96.0.11 514/udp@30514
  kube/log-1 of log 514/udp | 10.244.0.8 | 10.244.1.8
  kube/web 10.96.0.12 80
  kube/web-1 of web 8080 | 10.244.0.9`;
const ALL = ['udp *:30053', 'udp 10.96.0.10:53', 'udp 198.51.100.20:53', 'udp 203.0.113.5:53'];

interface Case {
  readonly title: string;
  readonly before?: string;
  readonly after: string;
  readonly asked: readonly string[];
  readonly stale?: readonly string[];
  readonly kept?: readonly string[];
  readonly view?: NodeView;
}

const CASES: readonly Case[] = [
  {
    title: 'an endpoint is gone',
    after: `${SLICE} | 10.244.1.3`,
    asked: ALL,
    stale: [
      'udp 10.96.0.10:53 > 10.244.0.3:5353',
      'udp 203.0.113.5:53 > 10.244.0.3:5353',
      'udp 198.51.100.20:53 > 10.244.0.3:5353',
      'udp 192.0.2.10:30053 > 10.244.0.3:5353',
      'udp 127.0.0.1:30053 > 10.244.0.3:5353',
      'udp 10.96.0.10:53 > 10.96.0.10:53',
      'udp 192.0.2.99:30053 > 10.244.0.3:5353', // an address that the node had
    ],
    kept: [
      'udp 10.96.0.10:53 > 10.244.1.3:5353',
      'udp 192.0.2.10:30053 > 10.244.1.3:5353',
      'udp 10.244.0.3:5353 > 10.244.0.3:5353', // dialled without a service
      'udp 203.0.113.99:30053 > 203.0.113.99:30053', // another machine's port
      'udp 203.0.113.99:30053 > 10.9.9.9:30053',
      'sctp 10.96.0.10:53 > 10.244.0.3:5353',
      'udp 10.96.0.10:54 > 10.244.0.3:5353',
      'udp 10.96.0.11:514 > 10.99.0.1:514', // wrong, but not what this change is about
    ],
  },
  {
    title: 'an endpoint drains: what it has, it keeps',
    after: `${SLICE} | 10.244.0.3 draining | 10.244.1.3`,
    asked: [],
    kept: ['udp 10.96.0.10:53 > 10.244.0.3:5353'],
  },
  {
    title: 'an endpoint is ready but no longer serves (publishNotReadyAddresses)',
    after: `${SLICE} | 10.244.0.3 published | 10.244.1.3`,
    asked: ALL,
    stale: ['udp 10.96.0.10:53 > 10.244.0.3:5353', 'udp 192.0.2.10:30053 > 10.244.0.3:5353'],
    kept: ['udp 10.96.0.10:53 > 10.244.1.3:5353'],
  },
  {
    title: 'an endpoint comes',
    after: `${SLICE} | 10.244.0.3 | 10.244.1.3 | 10.244.1.4`,
    asked: [],
  },
  {
    title: 'nobody is left',
    after: '- kube/dns-1',
    asked: ALL,
    stale: [
      'udp 10.96.0.10:53 > 10.244.0.3:5353',
      'udp 10.96.0.10:53 > 10.244.1.3:5353',
      'udp 192.0.2.10:30053 > 10.244.1.3:5353',
    ],
    kept: ['udp 203.0.113.99:30053 > 203.0.113.99:30053'],
  },
  {
    title: 'the first endpoint comes',
    before: SERVICE,
    after: `${SLICE} | 10.244.0.3`,
    asked: ALL,
    stale: ['udp 10.96.0.10:53 > 10.96.0.10:53', 'udp 192.0.2.10:30053 > 192.0.2.10:30053'],
    kept: ['udp 10.96.0.10:53 > 10.244.0.3:5353', 'udp 203.0.113.99:30053 > 203.0.113.99:30053'],
  },
  {
    title: 'a service comes that clients send to already',
    before: '',
    after: `${SERVICE}\n${SLICE} | 10.244.0.3`,
    asked: ALL,
    stale: ['udp 10.96.0.10:53 > 10.96.0.10:53', 'udp 192.0.2.10:30053 > 192.0.2.10:30053'],
    kept: ['udp 10.96.0.10:53 > 10.244.0.3:5353'],
  },
  {
    title: 'a service is deleted',
    after: '- kube/dns',
    asked: ALL,
    stale: [
      'udp 10.96.0.10:53 > 10.244.0.3:5353',
      'udp 10.96.0.10:53 > 10.244.7.7:5353', // a drained endpoint from long ago
      'udp 192.0.2.10:30053 > 10.244.0.3:5353',
      'udp 192.0.2.99:30053 > 10.244.0.3:5353',
    ],
    kept: [
      'udp 10.96.0.10:53 > 10.96.0.10:53', // nobody rewrote it
      'udp 192.0.2.10:30053 > 192.0.2.10:30053',
      'udp 203.0.113.99:30053 > 10.9.9.9:53',
    ],
  },
  {
    title: 'a frontend is taken away',
    after: 'kube/dns 10.96.0.10 dns:53/udp lb=198.51.100.20',
    asked: ['udp *:30053', 'udp 203.0.113.5:53'],
    stale: ['udp 203.0.113.5:53 > 10.244.0.3:5353', 'udp 192.0.2.10:30053 > 10.244.0.3:5353'],
    kept: ['udp 10.96.0.10:53 > 10.244.0.3:5353', 'udp 203.0.113.5:53 > 203.0.113.5:53'],
  },
  {
    title: 'a node port moves to another service',
    after: `kube/dns 10.96.0.10 dns:53/udp ext=203.0.113.5 lb=198.51.100.20\nkube/log 10.96.0.11 514/udp@30053`,
    asked: ['udp *:30053', 'udp *:30514'],
    stale: ['udp 192.0.2.10:30053 > 10.244.0.3:5353', 'udp 192.0.2.10:30514 > 10.244.0.8:514'],
    kept: ['udp 192.0.2.10:30053 > 10.244.0.8:514'],
  },
  {
    title: 'node ports that do not answer on every address',
    view: { ...VIEW, nodePorts: { ranges: [cidr('192.0.2.0/24')], loopback: false } },
    after: `${SLICE} | 10.244.1.3`,
    asked: ALL,
    stale: ['udp 192.0.2.10:30053 > 10.244.0.3:5353'],
    kept: ['udp 198.51.100.7:30053 > 198.51.100.7:30053', 'udp 127.0.0.1:30053 > 127.0.0.1:30053'],
  },
  {
    title: 'SCTP is treated like UDP',
    before: `shop/call 10.96.0.20 5060/sctp\nshop/call-1 of call 5060/sctp | 10.244.0.5`,
    after: 'shop/call-1 of call 5060/sctp | 10.244.0.6',
    asked: ['sctp 10.96.0.20:5060'],
    stale: ['sctp 10.96.0.20:5060 > 10.244.0.5:5060'],
    kept: ['sctp 10.96.0.20:5060 > 10.244.0.6:5060', 'udp 10.96.0.20:5060 > 10.244.0.5:5060'],
  },
];

describe('after a change', () => {
  test.each(CASES)('$title', ({ before = WORLD, after, asked, stale = [], kept = [], view }) => {
    const made = new Cluster(view);
    made.tell(before).replan();
    const review = runToEnd(reviewChanges(made.tell(after).replan(), made.planner, LOCAL));
    expect(questions(review)).toEqual(asked);
    expect(stale.filter((text) => !review.isStale(flow(text)))).toEqual([]);
    expect(kept.filter((text) => review.isStale(flow(text)))).toEqual([]);
  });

  test('a flow is judged by what is there when it is looked at, not by what the change was', () => {
    const made = cluster(WORLD);
    const changes = made.tell(`${SLICE} | 10.244.1.3`).replan();
    const review = runToEnd(reviewChanges(changes, made.planner, LOCAL));
    made.tell(`${SLICE} | 10.244.0.3 | 10.244.1.4`).replan();
    expect(review.isStale(flow('udp 10.96.0.10:53 > 10.244.0.3:5353'))).toBe(false);
    expect(review.isStale(flow('udp 10.96.0.10:53 > 10.244.1.4:5353'))).toBe(false);
    expect(review.isStale(flow('udp 10.96.0.10:53 > 10.244.1.3:5353'))).toBe(true);
  });
});

test('at the start everything is looked at, and only what is wrong is stale', () => {
  const made = cluster(`${WORLD}\nkube/empty 10.96.0.13 99/udp`);
  const review = runToEnd(reviewAll([], made.planner, LOCAL));
  expect(questions(review)).toEqual(
    [...ALL, 'udp *:30514', 'udp 10.96.0.11:514', 'udp 10.96.0.13:99'].sort(),
  );
  const stale = [
    'udp 10.96.0.10:53 > 10.244.9.9:5353',
    'udp 192.0.2.10:30514 > 10.244.9.9:514',
    'udp 10.96.0.11:514 > 10.96.0.11:514',
    'udp 10.96.0.13:99 > 10.244.9.9:99',
  ];
  const kept = [
    'udp 10.96.0.10:53 > 10.244.0.3:5353',
    'udp 192.0.2.10:30514 > 10.244.0.8:514',
    'udp 203.0.113.99:30514 > 203.0.113.99:30514',
    'udp 192.0.2.99:30514 > 10.244.0.3:30514',
    'udp 8.8.8.8:53 > 8.8.8.8:53',
    'udp 10.96.0.12:80 > 10.244.9.9:8080',
  ];
  expect(stale.filter((text) => !review.isStale(flow(text)))).toEqual([]);
  expect(kept.filter((text) => review.isStale(flow(text)))).toEqual([]);
});
