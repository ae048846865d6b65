/** Random lines for `Cluster.tell`, from few values, so that services and slices collide often. */
import fc from 'fast-check';

function words(...parts: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  return fc.tuple(...parts).map((list) => list.filter((each) => each !== '').join(' '));
}

/** Usually nothing. */
function sometimes(...values: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant('') },
    { weight: 1, arbitrary: fc.constantFrom(...values) },
  );
}

export const anyServiceLine: fc.Arbitrary<string> = words(
  fc.constantFrom('a/x', 'a/y', 'b/z'),
  fc.constantFrom('10.96.0.1', '10.96.0.2', '10.96.0.3'),
  fc.constantFrom(
    '80',
    '80@30080',
    'p:80 q:81',
    'p:80@30080 q:81@30081',
    '53/udp',
    'd:53/udp t:53',
    '80/sctp@30080',
  ),
  sometimes('ext=1.1.1.1', 'ext=1.1.1.1,2.2.2.2', 'ext=10.96.0.1'),
  sometimes('lb=1.1.1.1', 'lb=2.2.2.2', 'lb=1.1.1.1,2.2.2.2'),
  sometimes('ranges=9.9.9.0/24', 'ranges=192.0.2.0/24,9.9.9.9/32', 'ranges=0.0.0.0/0'),
  sometimes('etp=Local'),
  sometimes('itp=Local'),
  sometimes('affinity=10800'),
  sometimes('hc=32100'),
  sometimes('born=1', 'born=2', 'born=3'),
);

const anyEndpoint = words(
  fc.constantFrom('10.244.0.1', '10.244.0.2', '10.244.1.1', '10.244.1.10'),
  fc.constantFrom('', 'node-a', 'node-b'),
  fc.constantFrom('', '', '', 'unready', 'draining', 'dead', 'published'),
  sometimes('zone=a', 'zone=b'),
);

export const anySliceLine: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('a/x-1 of x', 'a/y-1 of y', 'b/z-1 of z', 'a/x-2 of x'),
    fc.constantFrom('80', 'p:80 q:81', 'd:53/udp t:53', '53/udp', '80/sctp', 'p:8080'),
    fc.uniqueArray(anyEndpoint, { maxLength: 4, selector: (text) => text.split(' ')[0] }),
  )
  .map(([head, ports, list]) => `${head} ${ports} ${list.map((each) => `| ${each}`).join(' ')}`);
