import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { packetPath, parseRoute, placeOf, servicePath, titleOf } from '../../page/src/address.ts';

describe('addresses of views', () => {
  test.each([
    ['/', 'services', 'Services'],
    ['/services', 'services', 'Services'],
    ['/services/', 'services', 'Services'],
    ['/services/shop/web', 'service', 'shop/web'],
    ['/packet', 'packet', 'Packet'],
    ['/syncs', 'syncs', 'Syncs'],
    ['/node', 'node', 'Node'],
    ['/services/shop', 'unknown', 'Not found'],
    ['/services/shop/web/more', 'unknown', 'Not found'],
    ['/node/node1', 'unknown', 'Not found'],
    ['/elsewhere', 'unknown', 'Not found'],
  ])('%s is %s', (path, view, title) => {
    const route = parseRoute(path, '');
    expect([route.view, titleOf(route)]).toEqual([view, title]);
  });

  test('the query is the view’s', () => {
    expect(parseRoute('/services', '?search=a+b').query.get('search')).toBe('a b');
    expect(
      parseRoute(...partsOf(packetPath({ from: 'pod/shop/a', to: '[fd00::1]:80' }))).query.get('to'),
    ).toBe('[fd00::1]:80');
  });

  test('a name that cannot be decoded is nobody’s', () => {
    expect(parseRoute('/services/shop/%E0%A4%A', '')).toMatchObject({ service: 'shop/\0' });
  });

  test('any name comes back from its address', () => {
    const name = fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => !text.includes('/'));
    fc.assert(
      fc.property(name, name, (namespace, service) => {
        const path = servicePath(`${namespace}/${service}`);
        expect(parseRoute(path, '')).toMatchObject({ view: 'service', service: `${namespace}/${service}` });
      }),
    );
  });

  test('another query is the same place, another service is not', () => {
    const place = (path: string, search = ''): string => placeOf(parseRoute(path, search));
    expect(place('/services', '?search=web')).toBe(place('/'));
    expect(place('/services/shop/web')).not.toBe(place('/services/shop/api'));
  });
});

function partsOf(address: string): [path: string, search: string] {
  const at = address.indexOf('?');
  return [address.slice(0, at), address.slice(at)];
}
