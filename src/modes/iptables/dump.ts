/** What a reader keeps of the tables of iptables, as JSON. It may come from anybody, so every field is checked. */
import { JunctionError } from '../../errors.ts';
import { type Family, type Ip, parseIp } from '../../model/ip.ts';
import type { MachineSettings } from './proxier.ts';
import type { LayoutName } from './rules/fragment.ts';
import { LAYOUTS } from './rules/layouts/index.ts';
import type { Variant } from './variant.ts';

export interface DumpedTables {
  /** Bridges whose ports iptables sees. */
  readonly bridges: readonly string[];
  /** What else a packet passes there. */
  readonly notes: readonly string[];
  /** What `iptables-save -c` printed, by table. */
  readonly tables: Readonly<Record<string, string>>;
}

export interface IptablesDump extends DumpedTables {
  readonly kind: 'iptables';
  readonly version: 1;
  readonly family: Family;
  readonly variant: Variant;
  readonly layout: LayoutName;
  readonly settings: MachineSettings;
  readonly addresses: readonly Ip[];
}

/** Characters of one table: 30,000 services with 10 endpoints have some 150 million. */
export const MAX_DUMPED = 200 << 20;

export function readDump(family: Family, dump: unknown): IptablesDump {
  const { kind, version, variant, layout, settings, addresses, bridges, notes, tables, ...rest } = objectIn(
    dump,
    'the dump',
  );
  if (kind !== 'iptables') throw unreadable('it is not of the iptables mode');
  if (version !== 1) throw unreadable(`its version is ${printed(version)}, and only 1 is known`);
  if (rest['family'] !== family) throw unreadable(`it is of ${printed(rest['family'])}`);
  if (variant !== 'nft' && variant !== 'legacy') throw unreadable(`its variant is ${printed(variant)}`);
  return {
    kind,
    version,
    family,
    variant,
    layout: layoutIn(layout),
    settings: settingsIn(objectIn(settings, 'settings')),
    addresses: textsIn(addresses, 'addresses').map(addressIn),
    bridges: textsIn(bridges, 'bridges'),
    notes: textsIn(notes, 'notes'),
    tables: tablesIn(objectIn(tables, 'tables')),
  };
}

function settingsIn({ masqueradeMark, randomFully, dropInvalid, nfacct }: Fields): MachineSettings {
  const { invalidDropped, localhostNodePorts } = objectIn(nfacct, 'settings.nfacct');
  if (typeof masqueradeMark !== 'number' || masqueradeMark <= 0 || masqueradeMark > 0xffff_ffff)
    throw unreadable(`settings.masqueradeMark is ${printed(masqueradeMark)}`);
  return {
    masqueradeMark,
    randomFully: randomFully === true,
    dropInvalid: dropInvalid === true,
    nfacct: {
      invalidDropped: invalidDropped === true,
      localhostNodePorts: localhostNodePorts === true,
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function objectIn(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unreadable(`${what} is no object`);
  return { ...value };
}

function textsIn(value: unknown, what: string): readonly string[] {
  if (!Array.isArray(value)) throw unreadable(`${what} is no list`);
  return value.map((each: unknown) => {
    if (typeof each !== 'string') throw unreadable(`${what} has something else than text`);
    return each;
  });
}

function layoutIn(value: unknown): LayoutName {
  if (typeof value === 'string' && isLayout(value)) return value;
  throw unreadable(`its layout is ${printed(value)}`);
}

function isLayout(text: string): text is LayoutName {
  return Object.hasOwn(LAYOUTS, text);
}

function addressIn(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw unreadable(`${printed(text)} is no address`);
  return ip;
}

function tablesIn(fields: Fields): Readonly<Record<string, string>> {
  const tables: Record<string, string> = {};
  for (const [name, text] of Object.entries(fields)) {
    if (typeof text !== 'string') throw unreadable(`table ${printed(name)} is no text`);
    tables[name] = text;
  }
  return tables;
}

function printed(value: unknown): string {
  return (JSON.stringify(value) ?? 'missing').slice(0, 100);
}

function unreadable(reason: string): JunctionError {
  return new JunctionError('BUNDLE_UNREADABLE', `the dump of iptables cannot be read: ${reason}`);
}
