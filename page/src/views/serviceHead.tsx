/** Above the path: which port and family is shown, and whether it is of now. */
import type { ServicePortExplanation } from '../../../src/explain/types.ts';
import { Badge } from '../parts/badge.tsx';
import { Ago, Clock } from '../parts/time.tsx';
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

export function AsItWas({
  service,
  query,
  at,
}: Pick<TabsProps, 'service' | 'query'> & { readonly at: string }) {
  const time = Date.parse(at);
  return (
    <p class="notice">
      <span>
        As it was {Number.isNaN(time) ? `at ${at}` : <Ago at={time} />}
        {!Number.isNaN(time) && (
          <>
            {' '}
            (<Clock at={time} />)
          </>
        )}
        : planned again from what was known then. No kernel is asked about the past.
      </span>
      <a href={serviceAddress(service, query, { at: undefined })}>Show it as it is now</a>
    </p>
  );
}
