/** What a sync would change in sets, virtual servers and addresses, as differences between the kernel and the plan. */
import type { KernelDifference } from '../../kernelRules.ts';
import { DEVICE, type IpvsEdit } from './client.ts';
import { serverKey } from './compile.ts';
import { entryKey } from './sets.ts';
import { printDestinationLine, printServerLine } from './text.ts';

/** `edit`: what a sync would write. Whose it is, `ownersOf` finds. */
export function differenceOf(edit: IpvsEdit): KernelDifference {
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
      return serverDifference(edit);
  }
}

type ServerEdit = Extract<IpvsEdit, { server: unknown }>;

function serverDifference(edit: ServerEdit): KernelDifference {
  const object = `virtual server ${serverKey(edit.server)}`;
  switch (edit.kind) {
    case 'newServer':
      return missing(object, printServerLine(edit.server));
    case 'setServer':
      return {
        kind: 'different',
        object,
        text: `${printServerLine(edit.server)}; in the kernel ${printServerLine(edit.was)}`,
      };
    case 'deleteServer':
      return extra(object, printServerLine(edit.server));
    case 'newDestination':
      return missing(
        `real server of ${object}`,
        printDestinationLine(edit.server, edit.destination.key, edit.weight),
      );
    default: {
      const line = printDestinationLine(edit.server, edit.destination.key, edit.was ?? 0);
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
