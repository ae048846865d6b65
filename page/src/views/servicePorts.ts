/** The ports and families of a service, as the address names them: `?port=http&family=IPv6`. */
import type { ServicePortExplanation } from '../../../src/explain/types.ts';
import { servicePath } from '../address.ts';

/** `shop/dns:dns/UDP` → `dns/UDP`; of a port without a name, `TCP`. */
export function portLabel({ servicePort }: Pick<ServicePortExplanation, 'servicePort'>): string {
  const name = servicePort.slice(servicePort.indexOf('/') + 1);
  const colon = name.indexOf(':');
  const protocol = name.slice(name.lastIndexOf('/') + 1);
  const label = colon < 0 ? '' : name.slice(colon + 1, name.lastIndexOf('/'));
  return label === '' ? protocol : `${label}/${protocol}`;
}

/** The one that the address names, or the first; where the port has no such family, the one that it has. */
export function chosenPort(
  ports: readonly ServicePortExplanation[],
  query: URLSearchParams,
): ServicePortExplanation | undefined {
  const [port, family] = [query.get('port'), query.get('family')];
  const named = ports.filter((each) => {
    const label = portLabel(each);
    return port === label || port === label.slice(0, label.lastIndexOf('/'));
  });
  const some = named.length > 0 ? named : ports.filter((each) => each.servicePort === ports[0]?.servicePort);
  return some.find((each) => each.family === family) ?? some[0];
}

/** The same view of the service with another part of the query. `undefined` removes it. */
export function serviceAddress(
  service: string,
  query: URLSearchParams,
  changes: Readonly<Record<string, string | undefined>>,
): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) next.delete(name);
    else next.set(name, value);
  return next.size === 0 ? servicePath(service) : `${servicePath(service)}?${next}`;
}
