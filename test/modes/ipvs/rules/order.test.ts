/** In which order a service comes and goes, so that no packet meets half of it and no restart loses track of it. */
import { describe, expect, test } from 'vitest';
import { Harness } from './harness.ts';

const WEB = [
  'a/x LoadBalancer 10.96.0.1 80@30080 lb=203.0.113.1 ext=198.51.100.1 ranges=9.9.9.0/24',
  'a/x-1 of x 80 | 10.244.0.1 node-a | 10.244.1.1 node-b',
];
/** So that the sets that WEB needs are filled already, or are not. */
const OTHER = [
  'b/y LoadBalancer 10.96.0.2 80@30081 lb=203.0.113.2 ext=198.51.100.2 ranges=9.9.9.0/24',
  'b/y-1 of y 80 | 10.244.0.2 node-a',
];

function where(sent: readonly string[], ...pattern: readonly RegExp[]): readonly number[] {
  return sent.flatMap((line, index) => (pattern.some((each) => each.test(line)) ? [index] : []));
}

/** Everything of the first kind is before everything of the second, and there is some of each. */
function expectBefore(sent: readonly string[], first: RegExp, second: RegExp): void {
  const [before, after] = [where(sent, first), where(sent, second)];
  expect(before.length, `${String(first)} in ${sent.join('\n')}`).toBeGreaterThan(0);
  expect(after.length, `${String(second)} in ${sent.join('\n')}`).toBeGreaterThan(0);
  expect(Math.max(...before), `${String(first)} before ${String(second)}`).toBeLessThan(Math.min(...after));
}

describe.each([
  ['at a start', []],
  ['beside another service', OTHER],
])('a service comes %s', (_, others) => {
  test('its address comes after its virtual server, its endpoints, its entries and the rules', async () => {
    const harness = new Harness();
    if (others.length > 0) await harness.sync(...others);
    await harness.sync(...WEB);
    const { sent } = harness.kernel;
    expectBefore(sent, /^-A /, /^addr add/);
    expectBefore(sent, /^-a /, /^addr add/);
    expectBefore(sent, /^add /, /^addr add/);
    expectBefore(sent, /^rules$/, /^addr add/);
    expectBefore(sent, /^-A /, /^rules$/);
    expectBefore(sent, /^add /, /^rules$/);
  });

  test('its virtual server is named by a set before it is made, for a restart in between', async () => {
    const harness = new Harness();
    if (others.length > 0) await harness.sync(...others);
    await harness.sync(...WEB);
    expectBefore(
      harness.kernel.sent,
      /^add KUBE-(CLUSTER-IP|EXTERNAL-IP|LOAD-BALANCER|NODE-PORT-TCP) /,
      /^-A /,
    );
  });
});

describe.each([
  ['the last one', []],
  ['others stay', OTHER],
])('a service goes: %s', (_, others) => {
  test('its address first, then its virtual servers, and what names them last', async () => {
    const harness = new Harness();
    await harness.sync(...WEB, ...others);
    await harness.sync('- a/x', '- a/x-1');
    const { sent } = harness.kernel;
    expectBefore(sent, /^addr del/, /^-D /);
    expectBefore(sent, /^-D /, /^del /);
    expectBefore(sent, /^rules$/, /^addr del/);
    expect(where(sent, /^-d /)).toEqual([]); // endpoints go with their server
  });
});

test('a set is made before it is filled, and filled before rules match it', async () => {
  const harness = new Harness();
  await harness.sync(...WEB);
  const { sent } = harness.kernel;
  for (const [, name] of sent.flatMap((line) => [...line.matchAll(/^add (\S+)/g)]))
    expectBefore(sent, new RegExp(`^create ${name} `), new RegExp(`^add ${name} `));
  expectBefore(sent, /^create /, /^rules$/);
  expectBefore(sent, /^add /, /^rules$/);
});

test('new endpoints come before old ones go', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1');
  await harness.sync('a/x-1 of x 80 | 10.244.0.2');
  expectBefore(harness.kernel.sent, /^-a .*10\.244\.0\.2/, /^-e .*10\.244\.0\.1:80 -m -w 0/);
});

test('a service that only changes its address is never without one', async () => {
  const harness = new Harness();
  await harness.sync('a/x 10.96.0.1 80', 'a/x-1 of x 80 | 10.244.0.1');
  await harness.sync('a/x 10.96.0.2 80');
  expectBefore(harness.kernel.sent, /^addr add 10\.96\.0\.2/, /^addr del 10\.96\.0\.1/);
  expectBefore(harness.kernel.sent, /^-a -t 10\.96\.0\.2/, /^-D -t 10\.96\.0\.1/);
});
