/** What of the configuration decides on what a mode needs. */
import type { LayoutName } from '../iptables/rules/fragment.ts';

export type PreflightMode = 'iptables' | 'ipvs' | 'nftables';

export interface PreflightSettings {
  readonly layout: LayoutName;
  /** Node ports answer on 127.0.0.1. */
  readonly localhostNodePorts: boolean;
  readonly scheduler: string;
  readonly strictArp: boolean;
}
