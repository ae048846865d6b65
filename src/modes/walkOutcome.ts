/** What can become of a packet that is sent through rules, whatever kind of rules these are. */
import type { Ip } from '../model/ip.ts';

/** `Ending`: what is known besides, of every way that it can go. */
export type WalkOutcome<Ending> =
  | ({
      readonly kind: 'forward';
      readonly to: Ip;
      readonly port: number;
      readonly masqueraded: boolean;
    } & Ending)
  /** Goes on to where it was going. */
  | ({ readonly kind: 'pass'; readonly masqueraded: boolean } & Ending)
  | ({ readonly kind: 'reject' } & Ending)
  | ({ readonly kind: 'drop' } & Ending);
