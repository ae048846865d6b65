/** What a sync would change in sets, virtual servers and addresses, as differences between the kernel and the plan. */
import type { Family } from '../../../model/ip.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import type { KernelDifference } from '../../kernelReader.ts';
import { DEVICE, type DestinationState, type IpvsEdit, type ServerAttributes } from './client.ts';
import { compileVirtualServers, serverKey, type VirtualServerOptions } from './compile.ts';
import { editName, fragmentNames } from './refusals.ts';
import { entryKey } from './sets.ts';
import { printDestinationLine, printServerLine } from './text.ts';

/** Virtual servers that are there, with their real servers, by `serverKey`. */
export type ExistingServers = ReadonlyMap<
  string,
  { readonly attributes: ServerAttributes; readonly destinations: readonly DestinationState[] }
>;

/** `edits`: those that a sync would make. Whose they are, `ownersOf` finds. */
export function differenceOf(edit: IpvsEdit, existing: ExistingServers): KernelDifference {
  switch (edit.kind) {
    case 'createSet':
      return missing(`set ${edit.set}`, `create ${edit.set} ${edit.type}`);
    case 'destroySet':
    case 'swapSets':
      return { kind: 'different', object: `set ${edit.set}`, text: 'too small for its entries' };
    case 'addEntry':
      return missing(`entry of the set ${edit.set}`, `add ${edit.set} ${entryKey(edit.entry)}`);
    case 'deleteEntry':
      return extra(`entry of the set ${edit.set}`, `add ${edit.set} ${entryKey(edit.entry)}`);
    case 'makeDevice':
      return missing(`link ${DEVICE}`, `link add name ${DEVICE} type dummy`);
    case 'dropDevice':
      return { kind: 'different', object: `link ${DEVICE}`, text: 'its addresses are not local' };
    case 'bind':
      return missing(`address ${edit.ip} on ${DEVICE}`, `address add ${edit.ip} dev ${DEVICE}`);
    case 'unbind':
      return extra(`address ${edit.ip} on ${DEVICE}`, `address add ${edit.ip} dev ${DEVICE}`);
    default:
      return serverDifference(edit, existing);
  }
}

type ServerEdit = Extract<IpvsEdit, { server: unknown }>;

function serverDifference(edit: ServerEdit, existing: ExistingServers): KernelDifference {
  const key = serverKey(edit.server);
  const there = existing.get(key);
  const object = `virtual server ${key}`;
  switch (edit.kind) {
    case 'newServer':
      return missing(object, printServerLine(edit.server));
    case 'setServer': {
      const found = there ? `; in the kernel ${printServerLine(there.attributes)}` : '';
      return { kind: 'different', object, text: `${printServerLine(edit.server)}${found}` };
    }
    case 'deleteServer':
      return extra(object, there ? printServerLine(there.attributes) : key);
    case 'newDestination':
      return missing(
        `real server of ${object}`,
        printDestinationLine(edit.server, edit.destination.key, edit.weight),
      );
    default: {
      const found = there?.destinations.find((each) => each.key === edit.destination.key)?.weight ?? 0;
      const line = printDestinationLine(edit.server, edit.destination.key, found);
      if (edit.kind === 'deleteDestination' || edit.weight === 0)
        return extra(`real server of ${object}`, line);
      return { kind: 'different', object: `real server of ${object}`, text: `${line}; planned is weight 1` };
    }
  }
}

function missing(object: string, text: string): KernelDifference {
  return { kind: 'missing', object, text };
}

function extra(object: string, text: string): KernelDifference {
  return { kind: 'extra', object, text };
}

/** Which service port asks for what an edit is about, one service port at a time; by `editName`. */
export function* ownersOf(
  edits: readonly IpvsEdit[],
  servicePorts: ReadonlyMap<ServicePortId, ServicePortPlan>,
  options: VirtualServerOptions,
): Generator<void, ReadonlyMap<string, ServicePortId>> {
  const wanted = new Set(edits.map(editName));
  const owners = new Map<string, ServicePortId>();
  if (wanted.size === 0) return owners;
  const family: Family = options.family;
  for (const [id, port] of servicePorts) {
    for (const name of fragmentNames(compileVirtualServers(port, options), family))
      if (wanted.has(name) && !owners.has(name)) owners.set(name, id);
    yield;
  }
  return owners;
}
