/** One service: the path of its packets, and what decides it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { serviceHeadline } from '../../../src/explain/serviceWords.ts';
import { serviceOfPortId } from '../../../src/model/serviceTracker.ts';
import type {
  ChangeRecord,
  Finding,
  ServiceExplanation,
  ServiceObjects,
  ServicePortExplanation,
  WatchEvent,
} from '../../../src/explain/types.ts';
import { type ApiFailure, apiPath } from '../api.ts';
import { changedSince, signaturesOf } from '../diagram/marks.ts';
import type { Box } from '../diagram/graph.ts';
import { Findings } from '../parts/findings.tsx';
import { Shown } from '../parts/states.tsx';
import { useAnswer } from '../useAnswer.ts';
import { useServiceAnswer } from './serviceAnswer.ts';
import { ServiceEndpoints } from './serviceEndpoints.tsx';
import { ServiceFields } from './serviceFields.tsx';
import { PortTabs } from './serviceHead.tsx';
import { ServiceHistory } from './serviceHistory.tsx';
import { ServiceMissing } from './serviceMissing.tsx';
import { ServicePath } from './servicePath.tsx';
import { chosenPort } from './servicePorts.ts';
import { ServiceRules } from './serviceRules.tsx';
import './service.css';

interface ViewProps {
  readonly service: string;
  readonly query: URLSearchParams;
}

export function ServiceView({ service, query }: ViewProps) {
  const isTouched = (event: WatchEvent): boolean => touches(event, service);
  const { answer, isWalking } = useServiceAnswer(service, isTouched);
  const failure = answer.kind === 'loading' ? undefined : answer.failure;
  if (failure && isAbsent(failure)) return <ServiceMissing service={service} failure={failure} />;
  return (
    <>
      {answer.kind !== 'here' && <h1>{service}</h1>}
      <Shown what={service} answer={answer}>
        {(explanation) => <Explained explanation={explanation} isWalking={isWalking} query={query} />}
      </Shown>
    </>
  );
}

/** A name that nothing is known of; what the proxy says about it is shown. */
function isAbsent({ status }: ApiFailure): boolean {
  return status === 400 || status === 404;
}

/** A change by another program may have been to the rules of any service. */
function touches(event: WatchEvent, service: string): boolean {
  switch (event.kind) {
    case 'change':
      return event.service === service;
    case 'refused':
      return serviceOfPortId(event.servicePort) === service;
    case 'foreign':
      return true;
    default:
      return false;
  }
}

function Explained({
  explanation,
  isWalking,
  query,
}: {
  readonly explanation: ServiceExplanation;
  readonly isWalking: boolean;
  readonly query: URLSearchParams;
}) {
  const { service, type, findings, ports, node, mode } = explanation;
  const { text, colour } = serviceHeadline(explanation);
  const port = chosenPort(ports, query);
  return (
    <>
      <header class="service-head">
        <h1>{service}</h1>
        {type !== undefined && <span class="badge">{type}</span>}
        <span class={`badge headline-${colour}`}>{text}</span>
        <span class="quiet">
          on {node}, {mode} mode
        </span>
      </header>
      {ports.length > 1 && port && <PortTabs service={service} query={query} ports={ports} chosen={port} />}
      {!port && <Findings findings={findings} label="Findings" />}
      {!port && (
        <p class="quiet">
          No packet goes to it through this proxy: there is no path to draw.{' '}
          <a href="/services">All services</a>
        </p>
      )}
      {port && (
        <Port
          key={`${port.servicePort} ${port.family}`}
          port={port}
          findings={findings}
          isWalking={isWalking}
          service={service}
          query={query}
        />
      )}
    </>
  );
}

interface PortProps extends ViewProps {
  readonly port: ServicePortExplanation;
  readonly findings: readonly Finding[];
  readonly isWalking: boolean;
}

/** Findings stand beside the path: one more or less must not move it. */
function Port({ port, findings, isWalking, service, query }: PortProps) {
  const [namespace = '', name = ''] = service.split('/');
  const [pointed, setPointed] = useState<Box>();
  const changed = useChanged(port);
  const isTouched = (event: WatchEvent): boolean => touches(event, service);
  const objects = useAnswer<ServiceObjects>(apiPath(['objects', namespace, name]), isTouched);
  const history = useAnswer<readonly ChangeRecord[]>(apiPath(['history'], { service }), isTouched);
  return (
    <div class="service-grid">
      <div class="service-main">
        <ServicePath
          port={port}
          address={{ service, query }}
          changed={changed}
          pointed={pointed}
          onPoint={setPointed}
        />
        <ServiceEndpoints rows={port.endpoints} pointed={pointed} />
        <ServiceRules port={port} pointed={pointed} isWalking={isWalking} />
      </div>
      {findings.length > 0 && (
        <div class="service-findings">
          <Findings findings={findings} label="Findings" />
        </div>
      )}
      <div class="service-side">
        <ServiceFields answer={objects} pointed={pointed} />
        <ServiceHistory answer={history} />
      </div>
    </div>
  );
}

/** Marks stay so long. */
const MARKED_MS = 8000;

/** What the last answers changed. */
function useChanged(port: ServicePortExplanation): ReadonlySet<string> {
  const before = useRef<ReturnType<typeof signaturesOf>>(undefined);
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const after = signaturesOf(port);
    const found = before.current ? changedSince(before.current, after) : new Set<string>();
    before.current = after;
    if (found.size === 0) return undefined;
    setChanged(found);
    const timer = setTimeout(() => setChanged(new Set()), MARKED_MS);
    return () => clearTimeout(timer);
  }, [port]);
  return changed;
}
