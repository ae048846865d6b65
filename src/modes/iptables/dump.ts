/** What a reader keeps of the tables of iptables: what `iptables-save -c` printed. */
import type { Family, Ip } from '../../model/ip.ts';
import { type DumpFields, dumpHeader, readDump } from '../dump.ts';
import type { MachineSettings } from './proxier.ts';
import type { LayoutName } from './rules/fragment.ts';

export interface DumpedTables {
  /** Bridges whose ports iptables sees. */
  readonly bridges: readonly string[];
  /** What else a packet passes there. */
  readonly notes: readonly string[];
  /** By table. */
  readonly tables: Readonly<Record<string, string>>;
}

interface IptablesDump extends DumpedTables {
  readonly layout: LayoutName;
  readonly settings: MachineSettings;
  readonly addresses: readonly Ip[];
}

/** Characters of one table: 30,000 services with 10 endpoints have some 150 million. */
export const MAX_DUMPED = 200 << 20;

export function writeIptablesDump(family: Family, dump: IptablesDump): unknown {
  return { ...dumpHeader('iptables', family), ...dump };
}

export function readIptablesDump(family: Family, dump: unknown): IptablesDump {
  return readDump('iptables', family, dump, (fields) => {
    const settings = fields.map('settings');
    const nfacct = settings.map('nfacct');
    return {
      layout: fields.choice('layout', ['current', 'classic']),
      settings: {
        masqueradeMark: settings.number('masqueradeMark'),
        randomFully: settings.flag('randomFully'),
        dropInvalid: settings.flag('dropInvalid'),
        nfacct: {
          invalidDropped: nfacct.flag('invalidDropped'),
          localhostNodePorts: nfacct.flag('localhostNodePorts'),
        },
      },
      addresses: fields.ips('addresses'),
      ...dumpedTablesIn(fields),
    };
  });
}

export function dumpedTablesIn(fields: DumpFields): DumpedTables {
  const tables = fields.map('tables');
  return {
    bridges: fields.texts('bridges'),
    notes: fields.texts('notes'),
    tables: Object.fromEntries(tables.keys().map((name) => [name, tables.text(name)])),
  };
}
