/** `spec.ports` of a Service. */
import { PROTOCOLS, type ServicePortSpec } from '../objects.ts';
import type { Cursor } from './cursor.ts';
import { PORT_LEFT_OUT } from './endpointSlice.ts';
import { LABEL, readOptionalName } from './names.ts';
import { quote } from './quote.ts';
import { readChoice, readOptionalPort, readPort } from './read.ts';

/** Twice what a Service may have (see plan/capacity.ts), because some may have to be left out. */
export const MOST_PORTS = 2000;

/** A service of which no port can be read is refused: what it served before stays. */
export function readServicePorts(spec: Cursor): readonly ServicePortSpec[] {
  const list = spec.field('ports');
  if (list.missing || (Array.isArray(list.value) && list.value.length === 0)) {
    list.refuse('is empty', 'at least one port');
  }
  const seen = new Map<string, Cursor>();
  const items = spec.maps('ports', MOST_PORTS);
  const ports = items.flatMap((item) => {
    const port = item.attempt(PORT_LEFT_OUT, (at) => readServicePort(at, seen));
    if (port === undefined) return [];
    for (const { claim } of claimsOf(port)) seen.set(claim, item);
    return [port];
  });
  if (ports.length === 0) for (const item of items) readServicePort(item, seen);
  return ports;
}

function readServicePort(at: Cursor, seen: ReadonlyMap<string, Cursor>): ServicePortSpec {
  const port: ServicePortSpec = {
    name: readOptionalName(at.field('name'), LABEL),
    protocol: readChoice(at.field('protocol'), PROTOCOLS, 'TCP'),
    port: readPort(at.field('port')),
    nodePort: readOptionalPort(at.field('nodePort')),
  };
  refuseRepetitions(at, port, seen);
  return port;
}

/** Two ports with one name are one key; two with one number would fight for the same packets. */
function refuseRepetitions(at: Cursor, port: ServicePortSpec, seen: ReadonlyMap<string, Cursor>): void {
  for (const { key, claim } of claimsOf(port)) {
    const field = at.field(key);
    const isStandIn = (field.value ?? '') !== port[key];
    const holder = isStandIn ? undefined : seen.get(claim);
    if (holder === undefined) continue;
    field.refuse(
      `${quote(port[key])} is taken by ${holder.label}`,
      `one of its own for each ${port.protocol} port`,
    );
  }
}

function claimsOf(port: ServicePortSpec): readonly { key: 'name' | 'port' | 'nodePort'; claim: string }[] {
  return (['name', 'port', 'nodePort'] as const)
    .filter((key) => port[key] !== 0)
    .map((key) => ({ key, claim: `${key} ${port[key]} ${port.protocol}` }));
}
