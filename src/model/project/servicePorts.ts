/** `spec.ports` of a Service. */
import { PROTOCOLS, type ServicePortSpec } from '../objects.ts';
import type { Cursor } from './cursor.ts';
import { LABEL, readOptionalName } from './names.ts';
import { quote } from './quote.ts';
import { readChoice, readOptionalPort, readPort } from './read.ts';

export function readServicePorts(spec: Cursor): readonly ServicePortSpec[] {
  const list = spec.field('ports');
  if (list.missing || (Array.isArray(list.value) && list.value.length === 0)) {
    list.refuse('is empty', 'at least one port');
  }
  const seen = new Map<string, string>();
  return spec.maps('ports').map((at) => {
    const port: ServicePortSpec = {
      name: readOptionalName(at.field('name'), LABEL),
      protocol: readChoice(at.field('protocol'), PROTOCOLS, 'TCP'),
      port: readPort(at.field('port')),
      nodePort: readOptionalPort(at.field('nodePort')),
    };
    refuseRepetitions(at, port, seen);
    return port;
  });
}

/** Two ports with one name are one key; two with one number would fight for the same packets. */
function refuseRepetitions(at: Cursor, port: ServicePortSpec, seen: Map<string, string>): void {
  for (const key of ['name', 'port', 'nodePort'] as const) {
    const field = at.field(key);
    const value = port[key];
    const isStandIn = (field.value ?? '') !== value;
    if (isStandIn || value === 0) continue;
    const claim = `${key} ${value} ${port.protocol}`;
    const holder = seen.get(claim);
    if (holder === undefined) seen.set(claim, at.label);
    else
      field.refuse(`${quote(value)} is taken by ${holder}`, `one of its own for each ${port.protocol} port`);
  }
}
