/** Options for those who compile a plan into rules, and the names of its chains. */
import type { CompileOptions, StaticOptions } from '../../../src/modes/iptables/rules/fragment.ts';
import { hash16 } from '../../../src/modes/iptables/rules/names.ts';
import type { Plan } from '../../../src/plan/types.ts';

export const OPTIONS: StaticOptions = {
  nodePortIps: 'all',
  masqueradeMark: 0x4000,
  randomFully: true,
  dropInvalid: true,
  nfacct: { invalidDropped: false, localhostNodePorts: false },
};

export function compileOptions(plan: Plan, options: Partial<CompileOptions> = {}): CompileOptions {
  return { ...OPTIONS, family: plan.family, view: plan.view, endpointComments: true, ...options };
}

/** `chain('SVC', 'shop/web:http')`, `chain('SEP', 'shop/web:http', '10.244.0.1:80')` */
export function chainName(kind: string, port: string, endpoint = '', protocol = 'tcp'): string {
  return `KUBE-${kind}-${hash16(port + protocol + endpoint)}`;
}
