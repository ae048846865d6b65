/** Opens what reads the kernel for questions, in a process that is not the proxy. */
import type { Settings } from '../config/settings.ts';
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import { iptablesReaderOfDump, openIptablesReader } from './iptables/inspect.ts';
import { ipvsReaderOfDump, openIpvsReader } from './ipvs/inspect.ts';
import type { KernelReader } from './kernelRules.ts';
import { nftablesReaderOfDump, openNftablesReader } from './nftables/inspect.ts';

export interface OpenReader extends KernelReader {
  close(): Promise<void> | void;
}

export async function openReader(family: Family, settings: Settings): Promise<OpenReader> {
  const { mode, layout, variant, masqueradeBit, scheduler, excludeCIDRs } = settings;
  switch (mode) {
    case 'iptables':
      return openIptablesReader(family, { layout, variant, masqueradeBit });
    case 'nftables':
      return openNftablesReader(family, { masqueradeBit });
    case 'ipvs':
      return openIpvsReader(family, { variant, masqueradeBit, scheduler, excludeCIDRs });
  }
}

/** Throws where the dump cannot be used. */
export function readerOfDump(mode: ModeName, family: Family, dump: unknown): KernelReader {
  switch (mode) {
    case 'iptables':
      return iptablesReaderOfDump(family, dump);
    case 'nftables':
      return nftablesReaderOfDump(family, dump);
    case 'ipvs':
      return ipvsReaderOfDump(family, dump);
  }
}
