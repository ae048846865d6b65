/** Who dials, in tests. */
import { type Packet } from '../../../../src/plan/decide.ts';
import { ip } from '../../../plan/given.ts';

/** From outside, for the cluster IP of most tests. */
export const CLIENT: Packet = {
  source: ip('203.0.113.9'),
  destination: ip('10.96.0.1'),
  protocol: 'TCP',
  port: 80,
  inInterface: 'eth0',
};

export function client(last: number): Packet {
  return { ...CLIENT, source: ip(`203.0.113.${last}`) };
}
