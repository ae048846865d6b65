/** Above the path: which port and family is shown. */
import type { ServicePortExplanation } from '../../../src/explain/types.ts';
import { Badge } from '../parts/badge.tsx';
import { portLabel, serviceAddress } from './servicePorts.ts';

interface TabsProps {
  readonly service: string;
  readonly query: URLSearchParams;
  readonly ports: readonly ServicePortExplanation[];
  readonly chosen: ServicePortExplanation;
}

export function PortTabs({ service, query, ports, chosen }: TabsProps) {
  return (
    <nav class="port-tabs" aria-label="Ports">
      {ports.map((port) => (
        <a
          key={`${port.servicePort} ${port.family}`}
          href={serviceAddress(service, query, { port: portLabel(port), family: port.family })}
          {...(port === chosen && { 'aria-current': 'page' as const })}
        >
          {portLabel(port)}, {port.family} <Badge state={port.state} />
        </a>
      ))}
    </nav>
  );
}
