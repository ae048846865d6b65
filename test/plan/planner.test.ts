import { describe, expect, test } from 'vitest';
import { Claims, frontendKey } from '../../src/plan/claims.ts';
import type { NodeView, PlanChange } from '../../src/plan/types.ts';
import { Cluster, cluster } from './cluster.ts';
import { ip, known, VIEW } from './given.ts';

function ids(changes: readonly PlanChange[]): readonly string[] {
  return changes.map(({ id, previous, current }) => `${previous ? (current ? '~' : '-') : '+'} ${id}`).sort();
}

function owner(of: Cluster, address: string | undefined, port: number): string | undefined {
  return of.planner.find(address === undefined ? undefined : ip(address), 'TCP', port)?.servicePort.id;
}

const WORLD = `
  shop/web 10.96.0.1 http:80
  shop/db  10.96.0.2 5432
  kube/dns 10.96.0.10 dns:53/udp dns-tcp:53
  shop/web-1 of web http:8080 | 10.244.0.1 node-a
  shop/db-1  of db 5432 | 10.244.0.2 node-b
  kube/dns-1 of dns dns:53/udp dns-tcp:53 | 10.244.0.3 node-b
`;

describe('only what changed is planned again', () => {
  const table: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
    ['nothing', '', [], []],
    ['a slice', 'shop/web-1 of web http:8080 | 10.244.0.9', ['shop/web'], ['~ shop/web:http/TCP']],
    ['a service', 'shop/db 10.96.0.2 5433', ['shop/db'], ['~ shop/db/TCP']],
    [
      'both at once, once',
      'shop/db 10.96.0.2 5433\nshop/db-1 of db 5432 | 10.244.0.9',
      ['shop/db'],
      ['~ shop/db/TCP'],
    ],
    ['a new service', 'shop/new 10.96.0.3 80', ['shop/new'], ['+ shop/new/TCP']],
    ['a deletion asks for no endpoints', '- kube/dns', [], ['- kube/dns:dns-tcp/TCP', '- kube/dns:dns/UDP']],
    ['a port less', 'kube/dns 10.96.0.10 dns:53/udp', ['kube/dns'], ['- kube/dns:dns-tcp/TCP']],
    ['a slice of no service', 'shop/x-1 of x 80 | 10.244.0.7', [], []],
    [
      'an endpoint that may not serve changes the count',
      'shop/web-2 of web http:8080 | 10.244.0.9 unready',
      ['shop/web'],
      ['~ shop/web:http/TCP'],
    ],
  ];
  test.each(table)('%s', (_, lines, asked, expected) => {
    const made = cluster(WORLD);
    const changes = made.tell(lines).replan();
    expect(made.asked).toEqual(asked);
    expect(ids(changes)).toEqual(expected);
  });

  test('the node changed: everything is planned, what is the same is not told', () => {
    const made = cluster(WORLD);
    made.asked.length = 0;
    const setView = (view: NodeView) => made.planner.update(made.planner.changeView(view));
    expect(ids(setView({ ...VIEW, zone: 'elsewhere' }))).toEqual([]);
    expect(made.asked).toHaveLength(3);
    expect(ids(setView({ ...VIEW, masqueradeAll: true }))).toHaveLength(4);
  });

  test('endpoints are counted', () => {
    const made = cluster(WORLD);
    expect(made.planner.endpointCount).toBe(4);
    made.tell('shop/web-1 of web http:8080 | 10.244.0.9 | 10.244.0.8 dead', '- shop/db').replan();
    expect(made.planner.endpointCount).toBe(4);
    made.tell('- kube/dns').replan();
    expect(made.planner.endpointCount).toBe(2);
  });
});

describe('two services claim one address', () => {
  const OLD = 'x/old 10.96.0.1 80 ext=1.1.1.1 born=1';
  const YOUNG = 'a/young 10.96.0.2 80 ext=1.1.1.1 born=2';

  const table: readonly (readonly [string, readonly string[], string])[] = [
    ['the oldest has it', [OLD, YOUNG], 'x/old/TCP'],
    ['whoever came first', [YOUNG, OLD], 'x/old/TCP'],
    ['of one age, the first by name', [OLD, 'a/young 10.96.0.2 80 ext=1.1.1.1 born=1'], 'a/young/TCP'],
    ['across kinds', [OLD, 'a/young 10.96.0.2 80 lb=1.1.1.1 born=2'], 'x/old/TCP'],
    ['an age is better than none', ['a/x 10.96.0.1 80 ext=1.1.1.1', YOUNG], 'a/young/TCP'],
    [
      'without ages, the first by name',
      ['x/b 10.96.0.1 80 ext=1.1.1.1', 'x/a 10.96.0.2 80 ext=1.1.1.1'],
      'x/a/TCP',
    ],
    [
      'a cluster IP is not claimed away by an older one that names it',
      [OLD, 'a/young 1.1.1.1 80 born=2'],
      'a/young/TCP',
    ],
  ];
  test.each(table)('%s', (_, lines, expected) =>
    expect(owner(cluster(...lines), '1.1.1.1', 80)).toBe(expected),
  );

  test('node ports too', () => {
    const made = cluster('x/old 10.96.0.1 80@30080 born=1', 'a/young 10.96.0.2 80@30080 born=2');
    expect(owner(made, undefined, 30080)).toBe('x/old/TCP');
    made.tell('- x/old').replan();
    expect(owner(made, undefined, 30080)).toBe('a/young/TCP');
  });

  test('who loses keeps the rest, and is told who has it', () => {
    const made = cluster(OLD, YOUNG);
    const young = known(made.planner.servicePorts.get('a/young/TCP'), 'a/young');
    expect(young.frontends.map(({ kind }) => kind)).toEqual(['clusterIP']);
    expect(made.planner.denied('a/young/TCP')).toEqual([{ key: '1.1.1.1/TCP/80', owner: 'x/old/TCP' }]);
    expect(made.planner.denied('x/old/TCP')).toEqual([]);
  });

  const takeovers: readonly (readonly [string, string, string | undefined, readonly string[]])[] = [
    ['the owner goes', '- x/old', 'a/young/TCP', ['- x/old/TCP', '~ a/young/TCP']],
    ['it gives the address up', 'x/old 10.96.0.1 80 born=1', 'a/young/TCP', ['~ a/young/TCP', '~ x/old/TCP']],
    [
      'it is born again',
      'x/old 10.96.0.1 80 ext=1.1.1.1 born=3',
      'a/young/TCP',
      ['~ a/young/TCP', '~ x/old/TCP'],
    ],
    [
      'an older one comes',
      'b/oldest 10.96.0.3 80 ext=1.1.1.1 born=0',
      'b/oldest/TCP',
      ['+ b/oldest/TCP', '~ x/old/TCP'],
    ],
    [
      'they change places',
      'x/old 10.96.0.1 80 ext=1.1.1.1 born=9\na/young 10.96.0.2 80 ext=1.1.1.1 born=5',
      'a/young/TCP',
      ['~ a/young/TCP', '~ x/old/TCP'],
    ],
  ];
  test.each(takeovers)('%s', (_, lines, expected, changes) => {
    const made = cluster(OLD, YOUNG);
    expect(ids(made.tell(lines).replan())).toEqual(changes);
    expect(owner(made, '1.1.1.1', 80)).toBe(expected);
  });
});

test('a claim costs the same however many wait, and going one after the other costs one sorting', () => {
  let looks = 0;
  const key = frontendKey(ip('1.1.1.1'), 'TCP', 80);
  const claims = new Claims();
  const claim = (number: number): void => {
    claims.claim(key, {
      id: `s${number}`,
      isClusterIP: false,
      get createdAt() {
        looks++;
        return number;
      },
    });
  };
  for (let number = 0; number < 1000; number++) claim(number);
  expect(looks).toBeLessThanOrEqual(2 * 1000);
  looks = 0;
  for (let number = 0; number < 999; number++)
    expect(claims.release(key, `s${number}`)).toBe(`s${number + 1}`);
  // One sorting for all of them.
  expect(looks).toBeLessThanOrEqual(2 * 1000 * 10);
});

describe('find', () => {
  const made = cluster('x/s 10.96.0.1 80@30080 lb=2.2.2.2 ext=3.3.3.3');
  test.each([
    ['10.96.0.1', 80, 'clusterIP'],
    ['3.3.3.3', 80, 'externalIP'],
    ['2.2.2.2', 80, 'loadBalancerIP'],
    [undefined, 30080, 'nodePort'],
    ['10.96.0.1', 81, undefined],
    ['10.96.0.9', 80, undefined],
    [undefined, 80, undefined],
    ['10.96.0.1', 30080, undefined],
  ])('%s:%d is %s', (address, port, kind) => {
    const found = made.planner.find(address === undefined ? undefined : ip(address), 'TCP', port);
    expect(found?.frontend.kind).toBe(kind);
  });
});

describe('a service with many ports', () => {
  const ports = (count: number): string =>
    Array.from({ length: count }, (_, index) => `p${index}:${1000 + index}`).join(' ');
  const stepsOf = (count: number): number => {
    const made = cluster(`shop/web 10.96.0.1 ${ports(count)}`);
    made.tell(`shop/web-1 of web ${ports(count)} | 10.244.0.1`).replan();
    made.planner.changeView({ ...VIEW, masqueradeAll: true });
    made.asked.length = 0;
    const steps = [...made.planner.updating(['shop/web'])].length;
    expect(made.asked).toEqual(['shop/web']);
    expect(made.planner.servicePorts.size).toBe(count);
    return steps;
  };

  test('is planned in steps of some ports, and ten times as many are ten times as many steps', () => {
    expect(stepsOf(320)).toBeGreaterThan(20);
    expect(stepsOf(3200)).toBe(10 * stepsOf(320));
  });
});
