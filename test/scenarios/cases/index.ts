import type { Scenario } from '../scenario.ts';
import { CLUSTER_IP } from './clusterIP.ts';

export const SCENARIOS: readonly Scenario[] = [...CLUSTER_IP];
