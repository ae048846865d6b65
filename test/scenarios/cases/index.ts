import type { Scenario } from '../scenario.ts';
import { AFFINITY } from './affinity.ts';
import { APPENDIX_C } from './appendixC.ts';
import { CLAIMS } from './claims.ts';
import { CLUSTER_IP } from './clusterIP.ts';
import { ENDPOINTS } from './endpoints.ts';
import { EXTERNAL_IP } from './externalIP.ts';
import { FAMILY_SCENARIOS } from './families.ts';
import { INTERNAL_POLICY } from './internalPolicy.ts';
import { LOAD_BALANCER } from './loadBalancer.ts';
import { NODE_PORT } from './nodePort.ts';
import { NOT_OURS } from './notOurs.ts';
import { SCTP } from './sctp.ts';
import { SETTINGS } from './settings.ts';
import { TOPOLOGY } from './topology.ts';

export const SCENARIOS: readonly Scenario[] = [
  ...CLUSTER_IP,
  ...NODE_PORT,
  ...EXTERNAL_IP,
  ...LOAD_BALANCER,
  ...INTERNAL_POLICY,
  ...AFFINITY,
  ...ENDPOINTS,
  ...TOPOLOGY,
  ...FAMILY_SCENARIOS,
  ...SCTP,
  ...NOT_OURS,
  ...CLAIMS,
  ...SETTINGS,
  ...APPENDIX_C,
];

/** For what writes nearly the same rules as another: the other way to write, and the other layout. */
export const COVERING: readonly Scenario[] = [
  ...CLUSTER_IP,
  ...LOAD_BALANCER,
  ...AFFINITY,
  ...FAMILY_SCENARIOS,
  ...APPENDIX_C.slice(0, 1),
];
