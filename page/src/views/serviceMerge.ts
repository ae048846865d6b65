/** The plan of a later answer with what the kernel did in an earlier one. */
import { frontendWords } from '../../../src/explain/serviceWords.ts';
import type {
  Finding,
  KernelExplanation,
  PacketExplanation,
  ServiceExplanation,
} from '../../../src/explain/types.ts';

/** What only the kernel's rules can tell. */
const BY_KERNEL: ReadonlySet<string> = new Set(['foreign-rule', 'kernel-differs']);

export function withKernelOf(plan: ServiceExplanation, walked: ServiceExplanation): ServiceExplanation {
  const kernels = new Map<string, KernelExplanation>();
  for (const { servicePort, packets } of walked.ports)
    for (const packet of packets) if (packet.kernel) kernels.set(keyOf(servicePort, packet), packet.kernel);
  const isByKernel = ({ code }: Finding): boolean => BY_KERNEL.has(code);
  return {
    ...plan,
    findings: [...plan.findings, ...walked.findings.filter(isByKernel)],
    ports: plan.ports.map((port) => ({
      ...port,
      packets: port.packets.map((packet) => {
        const kernel = kernels.get(keyOf(port.servicePort, packet));
        return kernel ? { ...packet, kernel } : packet;
      }),
    })),
  };
}

function keyOf(servicePort: string, packet: PacketExplanation): string {
  return `${servicePort} ${packet.packet.source} ${frontendWords(packet)}`;
}
