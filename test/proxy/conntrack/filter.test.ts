/** The filter of the netlink thread leaves out no flow that is stale: what is judged behind it is judged as without it. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flowTest, writeFlowFilter } from '../../../src/netlink/worker/flowFilter.ts';
import { type DatagramProtocol, reviewAll, reviewChanges } from '../../../src/plan/flows.ts';
import { runToEnd } from '../../../src/time/timeSlice.ts';
import { type ListedFlow, scanOf } from '../../netlink/support/flowMessage.ts';
import { cluster } from '../../plan/cluster.ts';
import { ip } from '../../plan/given.ts';

const LOCAL = [ip('192.0.2.10')];
const ADDRESSES = ['10.96.0.1', '10.96.0.2', '203.0.113.5', '192.0.2.10', '192.0.2.99', '127.0.0.1'].map(ip);
const ENDPOINTS = ['10.244.0.1', '10.244.0.2', '10.244.1.1', '10.244.1.2'].map(ip);
const PORTS = [53, 54, 30_053, 5353];
const PROTOCOLS: readonly DatagramProtocol[] = ['UDP', 'SCTP'];

const flow: fc.Arbitrary<ListedFlow> = fc.record({
  protocol: fc.constantFrom('TCP' as const, ...PROTOCOLS),
  destination: fc.constantFrom(...ADDRESSES, ...ENDPOINTS),
  destinationPort: fc.constantFrom(...PORTS),
  answerer: fc.constantFrom(...ADDRESSES, ...ENDPOINTS),
  answererPort: fc.constantFrom(...PORTS),
  id: fc.nat(0xffff),
});

const service = fc
  .record({
    name: fc.constantFrom('x', 'y'),
    address: fc.constantFrom('10.96.0.1', '10.96.0.2'),
    port: fc.constantFrom('53/udp', '53/udp@30053', '54/sctp', '54/udp 53/udp', '30053/udp'),
    external: fc.constantFrom('', ' ext=203.0.113.5', ' ext=192.0.2.10'),
  })
  .map(({ name, address, port, external }) => `a/${name} ${address} ${port}${external}`);

const slice = fc
  .record({
    name: fc.constantFrom('x', 'y'),
    port: fc.constantFrom('5353/udp', '53/udp', '53/sctp'),
    endpoints: fc.subarray(
      ENDPOINTS.flatMap((each): readonly string[] => [
        each,
        `${each} draining`,
        `${each} published`,
        `${each} unready`,
      ]),
      { maxLength: 4 },
    ),
  })
  .map(
    ({ name, port, endpoints }) =>
      `a/${name}-1 of ${name} ${port} ${endpoints.map((each) => `| ${each}`).join(' ')}`,
  );

const line = fc.oneof(service, slice, fc.constantFrom('- a/x', '- a/y', '- a/x-1', '- a/y-1'));
const lines = fc.array(line, { minLength: 1, maxLength: 6 });

test('whatever changed, and whatever flows there are', () => {
  fc.assert(
    fc.property(
      lines,
      lines,
      fc.array(flow, { maxLength: 60 }),
      fc.boolean(),
      (before, after, flows, isFirst) => {
        const made = cluster(before.join('\n'));
        made.replan();
        const changes = made.tell(...after).replan();
        const review = runToEnd((isFirst ? reviewAll : reviewChanges)(changes, made.planner, LOCAL));
        const asked = new Set(review.questions.map(({ protocol, port }) => `${protocol} ${port}`));
        const isAsked = ({ protocol, destinationPort }: ListedFlow): boolean =>
          asked.has(`${protocol} ${destinationPort}`);
        const filter = runToEnd(writeFlowFilter(review.candidates(), 'IPv4'));
        const scan = scanOf(flows, filter);
        const isStale = ({ protocol, ...rest }: ListedFlow): boolean =>
          protocol !== 'TCP' && review.isStale({ protocol, ...rest });
        expect(scan.flows.filter((each) => review.isStale(each)).map(({ id }) => id)).toEqual(
          flows.filter((each) => isAsked(each) && isStale(each)).map(({ id }) => id),
        );
        expect(scan.end.examined).toBe(flows.filter(isAsked).length);
      },
    ),
  );
});

test('flows that go on do not pass', () => {
  const made = cluster('a/x 10.96.0.1 53/udp\na/x-1 of x 5353/udp | 10.244.0.1 | 10.244.0.2');
  made.replan();
  const changes = made.tell('a/x-1 of x 5353/udp | 10.244.0.2').replan();
  const filter = runToEnd(
    writeFlowFilter(runToEnd(reviewChanges(changes, made.planner, LOCAL)).candidates(), 'IPv4'),
  );
  const to = (answerer: string, id: number): ListedFlow => ({
    protocol: 'UDP',
    destination: ip('10.96.0.1'),
    destinationPort: 53,
    answerer: ip(answerer),
    answererPort: 5353,
    id,
  });
  const flows = Array.from({ length: 100 }, (_, id) => to(id === 7 ? '10.244.0.1' : '10.244.0.2', id));
  const scan = scanOf(flows, filter);
  expect(scan.flows.map(({ id }) => id)).toEqual([7]);
  expect(scan.end.examined).toBe(100);
});

test('whatever a message has, it is read to its end at most', () => {
  const frontends = [{ protocol: 'UDP', address: undefined, port: 53, servers: [] }] as const;
  const filter = runToEnd(writeFlowFilter(frontends, 'IPv4'));
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 20, maxLength: 200 }), (bytes) => {
      try {
        runToEnd(flowTest(filter)).take(bytes);
      } catch (error) {
        expect(String(error)).toContain('netlink: ');
      }
    }),
  );
});
