/** From edits of the IPVS backend to messages for the kernel. */
import type { IpvsEdit } from './rules/client.ts';
import type { SetType } from './rules/sets.ts';
import type { Family } from '../../model/ip.ts';
import { addAddress, deleteAddress, deleteLink, newLink } from '../../netlink/rtnetlink.ts';
import type { Change } from '../../netlink/batch.ts';
import { addEntry, createSet, deleteEntry, destroySet, swapSets } from '../../netlink/ipset.ts';
import {
  deleteDestination,
  newDestination,
  setDestination,
  deleteService,
  newService,
  setService,
} from '../../netlink/ipvs.ts';
import { DEVICE } from './device.ts';

/** What the kernel must be asked for before anything can be said to it. */
export interface Numbers {
  readonly ipvs: number;
  readonly revisions: ReadonlyMap<SetType, number>;
}

/** Which part of the kernel an edit is for. */
export type Wire = 'set' | 'server' | 'link' | 'address';

const HASH_SIZE = 1024;
const LAST_PORT = 65_535;

export function wireOf({ kind }: IpvsEdit): Wire {
  switch (kind) {
    case 'createSet':
    case 'destroySet':
    case 'swapSets':
    case 'addEntry':
    case 'deleteEntry':
      return 'set';
    case 'makeDevice':
    case 'dropDevice':
      return 'link';
    case 'bind':
    case 'unbind':
      return 'address';
    default:
      return 'server';
  }
}

export function changeOf(
  edit: IpvsEdit,
  family: Family,
  { ipvs, revisions }: Numbers,
  device: number,
): Change {
  switch (edit.kind) {
    case 'createSet': {
      const { set, type, capacity } = edit;
      const spec =
        type === 'bitmap:port'
          ? { type, from: 0, to: LAST_PORT }
          : { type, family, hashSize: HASH_SIZE, maxElements: capacity };
      return createSet(set, spec, revisions.get(type) ?? 0);
    }
    case 'destroySet':
      return destroySet(edit.set);
    case 'swapSets':
      return swapSets(edit.set, edit.other);
    case 'addEntry':
      return addEntry(edit.set, edit.entry);
    case 'deleteEntry':
      return deleteEntry(edit.set, edit.entry);
    case 'newServer':
      return newService(ipvs, edit.server);
    case 'setServer':
      return setService(ipvs, edit.server);
    case 'deleteServer':
      return deleteService(ipvs, edit.server);
    case 'newDestination':
      return newDestination(ipvs, edit.server, { ...edit.destination, weight: edit.weight });
    case 'setDestination':
      return setDestination(ipvs, edit.server, { ...edit.destination, weight: edit.weight });
    case 'deleteDestination':
      return deleteDestination(ipvs, edit.server, edit.destination);
    case 'makeDevice':
      return newLink(DEVICE, 'dummy');
    case 'dropDevice':
      return deleteLink(DEVICE);
    case 'bind':
      return addAddress(device, edit.ip);
    case 'unbind':
      return deleteAddress(device, edit.ip);
  }
}
