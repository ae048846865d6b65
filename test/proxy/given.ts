/** A family's proxy with a writer that writes down what it is given, told of objects in one line each. */
import type { Family } from '../../src/model/ip.ts';
import { objectKey } from '../../src/model/objects.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { keyOf, service, SETTINGS, slice } from '../plan/given.ts';
import { FakeWriter } from './fakes.ts';

export function make(family: Family = 'IPv4'): {
  readonly writer: FakeWriter;
  readonly proxy: Proxier;
} {
  const writer = new FakeWriter();
  return { writer, proxy: new Proxier({ family, settings: SETTINGS, writer, startedAt: 0 }) };
}

export function tell(proxy: Proxier, ...lines: readonly string[]): boolean {
  return lines
    .map((line) => {
      if (line.startsWith('- ')) return proxy.onService(line.slice(2), undefined);
      if (/^\S+ of /.test(line)) {
        const given = slice(line);
        return proxy.onEndpointSlice(objectKey(given.namespace, given.name), given);
      }
      const given = service(line);
      return proxy.onService(keyOf(given), given);
    })
    .some(Boolean);
}

export const WEB = 'shop/web 10.96.0.1 80';
export const WEB_1 = 'shop/web-1 of web 80 | 10.244.0.1 node-a';
